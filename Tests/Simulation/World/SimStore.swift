import Idempotency
import NIOCore
import Platform

/// The connection of one loop to the world's store.
final class SimStore: RecordStore, @unchecked Sendable {
  private static let timeOut: Int64 = 250

  private let server: StoreServer
  private let context: EventLoopContext
  private let loop: SimLoop
  private var lastArrival = Moment.start
  private var lastService = Moment.start
  private var lastReply = Moment.start

  init(_ server: StoreServer, _ context: EventLoopContext, _ loop: SimLoop) {
    self.server = server
    self.context = context
    self.loop = loop
  }

  private var schedule: Schedule { server.schedule }

  /// Sends a command, and calls back on the loop with the reply or the error.
  ///
  /// - Parameter effect: What the command does when the store runs it.
  private func send<Reply: Sendable>(
    _ effect: @escaping () -> Reply, _ ended: @escaping (Result<Reply, StoreError>) -> Void
  ) {
    guard !server.isAway(for: loop.machine) else {
      nonisolated(unsafe) let ended = ended
      return loop.execute { ended(.failure(.unavailable("the store is away"))) }
    }
    let call = Call(ended)
    call.timer = context.timers.start(milliseconds: Self.timeOut) {
      call.end(.failure(.fateUnknown("the store does not reply")))
    }
    let (machine, losesReply) = (loop.machine, server.losesReply())
    let breaks = server.breaks(of: machine)
    lastArrival = max(lastArrival.next, schedule.now + server.trip())
    schedule.at(lastArrival) { [self] in
      // A command that had not arrived when the connection broke never does.
      guard server.breaks(of: machine) == breaks else { return fail(call) }
      lastService = max(lastService.next, server.servedAt)
      schedule.at(lastService) { [self] in
        let reply = effect()
        guard server.breaks(of: machine) == breaks, !losesReply else { return fail(call) }
        answer(call, .success(reply))
      }
    }
  }

  private func fail<Reply>(_ call: Call<Reply>) {
    answer(call, .failure(.fateUnknown("the connection to the store broke")))
  }

  private func answer<Reply>(_ call: Call<Reply>, _ result: Result<Reply, StoreError>) {
    lastReply = max(lastReply.next, schedule.now + server.trip())
    schedule.at(lastReply) { [self] in
      loop.execute { [self] in
        if let timer = call.timer { context.timers.stop(timer) }
        call.end(result)
        context.executor.drain()
      }
    }
  }

  /// One command, which ends once.
  private final class Call<Reply: Sendable>: @unchecked Sendable {
    private var ended: ((Result<Reply, StoreError>) -> Void)?
    var timer: LoopTimers.Token?

    init(_ ended: @escaping (Result<Reply, StoreError>) -> Void) { self.ended = ended }

    func end(_ result: Result<Reply, StoreError>) {
      guard let ended else { return }
      self.ended = nil
      ended(result)
    }
  }

  private func call<Reply: Sendable>(
    _ name: String, _ id: RecordID, _ rule: @escaping StoreServer.Rule<Reply>
  ) async throws(StoreError) -> Reply {
    server.journal?(id, "\(loop.machine.name) sends \(name)")
    let result = await withUnsafeContinuation { continuation in
      send({ [server] in server.run(id, rule) }) { continuation.resume(returning: $0) }
    }
    server.journal?(id, "\(loop.machine.name) has for \(name): \(result)")
    return try result.get()
  }
}

extension SimStore {
  func startClaim(_ request: ClaimRequest, onReply: @escaping @Sendable (ClaimReply) -> Void) {
    let requestedAt = BootInstant.now
    let claim = { [server] () -> ClaimOutcome in
      // The delivery has given up by then.
      guard !server.isSpent(request.owner) else { return .mismatch }
      return server.run(request.id) { entry, now in
        RecordRules.claim(entry, request, now: now, requestedAt: requestedAt)
      }
    }
    server.journal?(
      request.id, "\(loop.machine.name) sends claim by owner \(request.owner.low % 10_000)")
    send(claim) { [server, loop] reply in
      server.journal?(request.id, "\(loop.machine.name) has for claim: \("\(reply)".prefix(100))")
      onReply(reply)
    }
  }

  func renew(_ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    try await call("renew", claim.id) { RecordRules.renew($0, claim, now: $1) }
  }

  func complete(
    _ claim: Claim, with completion: Completion
  ) async throws(StoreError) -> CompletionReply {
    try await call("complete", claim.id) {
      RecordRules.complete($0, claim, with: completion, now: $1)
    }
  }

  func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome {
    try await call("release", claim.id) { [server] entry, now in
      server.spend(claim.owner)
      return RecordRules.release(entry, claim, release, now: now)
    }
  }

  func markUnknown(_ claim: Claim, because cause: LossCause?) async throws(StoreError)
    -> OwnerOutcome
  {
    try await call("mark unknown", claim.id) {
      RecordRules.markUnknown($0, claim, because: cause, now: $1)
    }
  }

  func find(_ id: RecordID, reading: RecordReading) async throws(StoreError) -> Standing {
    try await call("find", id) { RecordStep(.none, RecordRules.find($0, now: $1)) }
  }

  func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool {
    try await call("forget", id) { [server] in
      server.decide(id)
      return RecordRules.forget($0, fence: fence, now: $1)
    }
  }

  func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool, attempt: Int?
  ) async throws(StoreError) -> OwnerOutcome {
    let successor = OwnerToken.ofOperator()
    return try await call("resolve", id) { [server] in
      server.decide(id)
      return RecordRules.resolve(
        $0, as: resolution, amending: amending, attempt: attempt, successor: successor, now: $1)
    }
  }

  func watch(_ id: RecordID) async throws(StoreError) -> SimWatch {
    let watch = SimWatch(id, server, context, loop)
    do throws(StoreError) {
      return try await call("watch", id) { [server] _, _ in
        server.add(watch)
        return RecordStep(.none, watch)
      }
    } catch {
      watch.cancel()
      throw error
    }
  }

  func isDown(for id: RecordID) async -> Bool { server.isAway(for: loop.machine) }

  func inspect(_ id: RecordID) async throws(StoreError) -> RecordView? { nil }
  func list(after cursor: String?) async throws(StoreError) -> OpenRecords {
    OpenRecords(records: [], next: nil)
  }
  func search(_ filter: RecordFilter, after cursor: String?) async throws(StoreError)
    -> FoundRecords
  {
    FoundRecords(ids: [], next: nil)
  }
  func isCursor(_ text: String) -> Bool { false }
}

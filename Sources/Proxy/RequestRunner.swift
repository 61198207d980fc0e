import Idempotency
import Loop
import NIOCore
import Telemetry
import Wire

/// Runs one delivery from its head to its answer: identify, claim, forward, capture, record, answer.
///
/// What follows what is decided by `Exchange`; this file does it. Its steps stand beside it: identifying (`+Identify`),
/// forwarding (`+Forward`), storing (`+Storing`), answering (`+Answer`); and what else may become of a delivery: passing
/// through (`+Passage`), waiting for another one (`DuplicateWait`).
struct RequestRunner<Store: RecordStore, Backend: Upstream>: Sendable {
  let worker: Worker<Store, Backend>
  let delivery: Delivery

  var environment: ProxyEnvironment { worker.environment }
  var generation: Generation { delivery.generation }
  var head: MessageHead { delivery.request.head }

  /// Begins. What can be answered at once is; the rest goes on in a task of its own, which outlives the connection.
  func start() {
    let inFlight = environment.counters.change(.inFlight, by: 1)
    beginTrace()
    do throws(Problem) {
      guard !environment.isDraining else { throw .overloaded(.draining, retryAfter: 1000) }
      guard inFlight <= generation.limits.maxInFlight else { throw .overloaded(.busy, retryAfter: 1000) }
      if let failure = delivery.bodyFailure { throw failure }
      let subject = try identify(body: delivery.wholeBody)
      guard case .keyed(let call, let fingerprint) = subject else {
        return goOn { () throws(Problem) in try await run(subject) }
      }
      guard let record = kept(call, fingerprint) else {
        try reserveCapture(call)
        return claim(call, fingerprint)
      }
      replay(record, from: .cache)
    } catch {
      refuse(error)
    }
    finish()
  }

  /// Goes on in a task, to the end.
  private func goOn(_ rest: @escaping @Sendable () async throws(Problem) -> Void) {
    _ = Task(executorPreference: worker.context.executor) {
      do throws(Problem) { try await rest() } catch { refuse(error) }
      finish()
    }
  }

  private func run(_ subject: Subject) async throws(Problem) {
    switch subject {
    case .passed(let target, let route, let label):
      try refuseWithoutMemory()
      try await passThrough(target, by: route, label: label)
    case .keyed(let call, let fingerprint):
      if let record = kept(call, fingerprint) { return replay(record, from: .cache) }
      try reserveCapture(call)
      let request = call.claimRequest(owner: worker.newOwner(), fingerprint: fingerprint)
      try await act(on: await ask(for: request), to: request, of: call)
    case .incomplete(let limit):
      try await run(try identify(body: try await delivery.collectBody(limit: limit)))
    case .large(let request):
      try await run(try await identify(request))
    }
  }

  /// Nothing is claimed or sent whose response would find no room.
  private func refuseWithoutMemory() throws(Problem) {
    guard delivery.hasMemory else { throw .overloaded(.busy, retryAfter: 1000) }
  }

  /// Reserves the room for the response before the claim; refuses if there is none.
  private func reserveCapture(_ call: KeyedCall) throws(Problem) {
    try refuseWithoutMemory()
    guard delivery.reserveCapture(for: call.caller) else { throw .overloaded(.busy, retryAfter: 1000) }
  }

  private func finish() {
    environment.counters.change(.inFlight, by: -1)
    delivery.runEnded()
    tell()
  }

  /// The recorded outcome that this process keeps, where it is one to replay.
  private func kept(_ call: KeyedCall, _ fingerprint: Fingerprint) -> CompletedRecord? {
    guard let outcome = worker.store.cached(call.id, fingerprint), let record = outcome.replayable else {
      return nil
    }
    note(outcome, of: call, fingerprint)
    return record
  }

  /// Claim: one delivery becomes the record's owner, the others replay, wait or are refused. A task is made only for
  /// what has to wait once more: most duplicates are answered from the store's first reply.
  @inline(never)
  private func claim(_ call: KeyedCall, _ fingerprint: Fingerprint) {
    let request = call.claimRequest(owner: worker.newOwner(), fingerprint: fingerprint)
    let askedAt = claimAsked()
    let isAsked = worker.store.claim(request) { reply in
      claimAnswered(askedAt)
      guard case .success(let outcome) = reply, let record = outcome.replayable else {
        return goOn { () throws(Problem) in try await act(on: reply, to: request, of: call) }
      }
      note(outcome, of: call, fingerprint)
      replay(record, from: .store)
      finish()
    }
    if !isAsked { goOn { () throws(Problem) in try await run(.keyed(call, fingerprint)) } }
  }

  /// Goes on by what the store said, and asks it again as often as that takes.
  private func act(
    on reply: ClaimReply, to request: ClaimRequest, of call: KeyedCall
  ) async throws(Problem) {
    var exchange = Exchange(route: call.route)
    var (reply, request) = (reply, request)
    var wait: DuplicateWait<Store>?
    defer { wait?.end() }
    while true {
      switch action(by: reply, to: request, of: call, &exchange) {
      case .forward(let claim):
        countSighting(claim, of: call)
        wait?.end()
        wait = nil
        guard try await forward(call, claim, &exchange) == .becomeDuplicate else { return }
        request = request.changed(owner: worker.newOwner())
      case .replay(let record):
        return replay(record, from: wait == nil ? .store : .wait)
      case .compare(let recipe):
        request = request.changed(fingerprint: await fingerprint(of: call, by: recipe))
      case .wait(let leaseLeft):
        guard try await mayAskAgain(&wait, for: call, leaseLeft) else {
          throw duplicate(exchange.gaveUpWaiting())
        }
        guard delivery.isConnected else { return }
      case .refuse(let problem):
        throw duplicate(problem)
      case .giveBack(let problem):
        giveBack(request)
        throw duplicate(problem)
      case .giveBackGrant(let claim, let problem):
        giveBack(unused: claim)
        throw duplicate(problem)
      case .forwardUnprotected(let mayOwn):
        return try await passUnprotected(call, request, mayOwn: mayOwn)
      }
      reply = await ask(for: request)
    }
  }

  /// Counts a first run whose key has just been another caller's.
  @inline(never)
  private func countSighting(_ claim: Claim, of call: KeyedCall) {
    guard claim.attempt == 1, call.isKeySeenUnderOtherCaller(in: environment.sightings) else { return }
    worker.metrics.add(.keysUnderOtherCaller)
  }

  /// The fingerprint by the recipe of a record that another configuration has made.
  @inline(never)
  private func fingerprint(of call: KeyedCall, by recipe: Recipe) async -> Fingerprint {
    let head = head
    guard worker.bodies.mayReadOnLoop(call.readBytes) else {
      return await worker.bodies.read(call.readBytes, of: delivery.connection) {
        call.fingerprint(by: recipe, head: head)
      }
    }
    return call.fingerprint(by: recipe, head: head)
  }

  /// Waits until the record may have changed; false where the delivery may not wait, or has waited long enough.
  @inline(never)
  private func mayAskAgain(
    _ wait: inout DuplicateWait<Store>?, for call: KeyedCall, _ leaseLeft: Milliseconds
  ) async throws(Problem) -> Bool {
    if let wait { return await wait.changed(leaseLeft: leaseLeft) }
    // Subscribed first, then asked again: no end is missed in between.
    wait = try await DuplicateWait(for: call, of: self)
    return wait != nil
  }

  /// A refusal because of what the store says of the record: of another delivery of the key, unless it says nothing.
  private func duplicate(_ problem: Problem) -> Problem {
    delivery.record.isDuplicateRefused = problem.code != .storeUnavailable && problem.code != .storeUnreadable
    return problem
  }

  private func ask(for request: ClaimRequest) async -> ClaimReply {
    let askedAt = claimAsked()
    defer { claimAnswered(askedAt) }
    do throws(StoreError) {
      return .success(try await worker.store.claim(request))
    } catch {
      return .failure(error)
    }
  }

  private func claimAsked() -> NIODeadline {
    let now = NIODeadline.now()
    if delivery.record.trace?.claimAt == 0 { delivery.record.trace?.claimAt = now.uptimeNanoseconds }
    return now
  }

  private func claimAnswered(_ askedAt: NIODeadline) {
    delivery.record.claimMicroseconds += microseconds(since: askedAt)
  }

  /// The next step by the store's reply and, where the route may run requests without the store, by what this process
  /// knows of the record.
  @inline(never)
  private func action(
    by reply: ClaimReply, to request: ClaimRequest, of call: KeyedCall, _ exchange: inout Exchange
  ) -> Exchange.ClaimedAction {
    if case .failure(.fateUnknown) = reply { worker.metrics.add(.claimsLost) }
    if call.route.mayRunUnprotected {
      return environment.known.change(request.id) {
        exchange.replied(reply, to: request, known: &$0, now: $1)
      }
    }
    switch reply {
    case .success(let outcome): return exchange.claimed(outcome)
    case .failure(let error): return exchange.claimFailed(error)
    }
  }
}

private typealias ClaimReply = Result<ClaimOutcome, StoreError>

extension ClaimOutcome {
  /// The recorded outcome, where it is one to replay.
  fileprivate var replayable: CompletedRecord? {
    guard case .taken(.completed(let record)) = self, case .kept = record.outcome else { return nil }
    return record
  }
}

import Idempotency
import NIOCore
import Telemetry

/// A store whose commands are timed, and whose failures are counted and logged, for one event loop. While it fails, and
/// shortly after, no record is taken over (`TakeOverPause`). It stands below the cache.
public struct MeasuredStore<Base: RecordStore>: RecordStore {
  private let base: Base
  private let metrics: LoopMetrics
  private let failures: StoreFailureLog
  private let takeOvers: TakeOverPause

  public init(_ base: Base, metrics: LoopMetrics, failures: StoreFailureLog, takeOvers: TakeOverPause) {
    self.base = base
    self.takeOvers = takeOvers
    self.metrics = metrics
    self.failures = failures
  }

  public func knownOutcome(of id: RecordID, _ fingerprint: Fingerprint) -> ClaimOutcome? {
    base.knownOutcome(of: id, fingerprint)
  }

  public func startClaim(_ request: ClaimRequest, onReply: @escaping @Sendable (ClaimReply) -> Void) {
    let began = NIODeadline.now()
    base.startClaim(takeOvers.permitted(request)) { [self] reply in
      switch reply {
      case .success: succeeded(.claim, began)
      case .failure(let error):
        _ = failed(.claim, error)
        if case .fateUnknown = error { metrics.add(.claimsLost) }
      }
      onReply(reply)
    }
  }

  public func renew(_ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    try await measured(.renew) { () throws(StoreError) in try await base.renew(claim) }
  }

  /// Does without `measured`, whose closure would cost each first run two more frames.
  public func complete(
    _ claim: Claim, with completion: Completion
  ) async throws(StoreError) -> CompletionReply {
    let began = NIODeadline.now()
    do throws(StoreError) {
      let reply = try await base.complete(claim, with: completion)
      succeeded(.complete, began)
      return reply
    } catch {
      throw failed(.complete, error)
    }
  }

  public func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome {
    try await measured(.release) { () throws(StoreError) in try await base.release(claim, release) }
  }

  public func markUnknown(
    _ claim: Claim, because cause: LossCause?
  ) async throws(StoreError) -> OwnerOutcome {
    try await measured(.markUnknown) { () throws(StoreError) in
      try await base.markUnknown(claim, because: cause)
    }
  }

  public func find(_ id: RecordID, reading: RecordReading) async throws(StoreError) -> Standing {
    try await measured(.find) { () throws(StoreError) in try await base.find(id, reading: reading) }
  }

  public func isDown(for id: RecordID) async -> Bool { await base.isDown(for: id) }

  public func list(after cursor: String?) async throws(StoreError) -> OpenRecords {
    try await measured(.list) { () throws(StoreError) in try await base.list(after: cursor) }
  }

  public func inspect(_ id: RecordID) async throws(StoreError) -> RecordView? {
    try await measured(.find) { () throws(StoreError) in try await base.inspect(id) }
  }

  public func search(
    _ filter: RecordFilter, after cursor: String?
  ) async throws(StoreError) -> FoundRecords {
    try await measured(.list) { () throws(StoreError) in try await base.search(filter, after: cursor) }
  }

  public var openIndex: (any OpenRecordIndex)? { base.openIndex }

  public func isCursor(_ text: String) -> Bool { base.isCursor(text) }

  public func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool {
    try await measured(.forget) { () throws(StoreError) in try await base.forget(id, fence: fence) }
  }

  public func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool, attempt: Int?
  ) async throws(StoreError) -> OwnerOutcome {
    try await measured(.resolve) { () throws(StoreError) in
      try await base.resolve(id, as: resolution, amending: amending, attempt: attempt)
    }
  }

  public func watch(_ id: RecordID) async throws(StoreError) -> Base.Watch {
    try await measured(.watch) { () throws(StoreError) in try await base.watch(id) }
  }

  /// Runs, times and counts a command.
  private func measured<Reply>(
    _ command: StoreCommand, _ run: () async throws(StoreError) -> Reply
  ) async throws(StoreError) -> Reply {
    let began = NIODeadline.now()
    do throws(StoreError) {
      let reply = try await run()
      succeeded(command, began)
      return reply
    } catch {
      throw failed(command, error)
    }
  }

  private func succeeded(_ command: StoreCommand, _ began: NIODeadline) {
    let now = NIODeadline.now()
    metrics.sent(command, microseconds: (now - began).nanoseconds / 1000)
    // Only commands that write prove that the store works: a store that is full still finds.
    if command == .claim || command == .complete { failures.succeeded(now: now.uptimeNanoseconds) }
  }

  private func failed(_ command: StoreCommand, _ error: StoreError) -> StoreError {
    // A store that is busy has not failed: whoever keeps it so must not switch take-overs off for others.
    guard let failure = StoreFailure(error) else { return error }
    // A record that cannot be read says nothing of the others, nor does a subscription or an operator's question of
    // what owners could write.
    if command.isOfOwners, failure != .unreadable { takeOvers.storeFailed() }
    metrics.failed(command, failure)
    failures.failed(command, failure, error.text, now: NIODeadline.now().uptimeNanoseconds)
    return error
  }
}

extension StoreCommand {
  /// Whether a delivery sends it to become a record's owner, or as its owner.
  fileprivate var isOfOwners: Bool {
    switch self {
    case .claim, .renew, .complete, .release, .markUnknown: true
    case .find, .forget, .resolve, .watch, .list: false
    }
  }
}

extension StoreFailure {
  /// `nil` for a store that is busy.
  fileprivate init?(_ error: StoreError) {
    switch error {
    case .busy: return nil
    case .unavailable, .refused: self = .unavailable
    case .fateUnknown: self = .fateUnknown
    case .unreadable: self = .unreadable
    }
  }
}

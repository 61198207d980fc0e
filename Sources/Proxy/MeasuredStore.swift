import Idempotency
import NIOCore
import Telemetry

/// A store whose commands are timed, and whose failures are counted and logged, for one event loop. It stands below the
/// cache.
public struct MeasuredStore<Base: RecordStore>: RecordStore {
  private let base: Base
  private let metrics: LoopMetrics
  private let failures: StoreFailureLog

  public init(_ base: Base, metrics: LoopMetrics, failures: StoreFailureLog) {
    self.base = base
    self.metrics = metrics
    self.failures = failures
  }

  public func claim(_ request: ClaimRequest) async throws(StoreError) -> ClaimOutcome {
    let began = NIODeadline.now()
    do throws(StoreError) {
      let outcome = try await base.claim(request)
      answered(.claim, began)
      return outcome
    } catch {
      throw failed(.claim, error)
    }
  }

  public func claim(
    _ request: ClaimRequest, tell: @escaping @Sendable (Result<ClaimOutcome, StoreError>) -> Void
  ) -> Bool {
    let began = NIODeadline.now()
    return base.claim(request) { [self] reply in
      switch reply {
      case .success: answered(.claim, began)
      case .failure(let error): _ = failed(.claim, error)
      }
      tell(reply)
    }
  }

  public func renew(_ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    try await measured(.renew) { () throws(StoreError) in try await base.renew(claim) }
  }

  public func complete(_ claim: Claim, with completion: Completion) async throws(StoreError) -> OwnerOutcome {
    try await measured(.complete) { () throws(StoreError) in try await base.complete(claim, with: completion)
    }
  }

  public func completeAndTell(
    _ claim: Claim, with completion: Completion
  ) async throws(StoreError) -> CompletionReply {
    let began = NIODeadline.now()
    do throws(StoreError) {
      let reply = try await base.completeAndTell(claim, with: completion)
      answered(.complete, began)
      return reply
    } catch {
      throw failed(.complete, error)
    }
  }

  public func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome {
    try await measured(.release) { () throws(StoreError) in try await base.release(claim, release) }
  }

  public func markUnknown(_ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    try await measured(.markUnknown) { () throws(StoreError) in try await base.markUnknown(claim) }
  }

  public func find(_ id: RecordID) async throws(StoreError) -> Standing {
    try await measured(.find) { () throws(StoreError) in try await base.find(id) }
  }

  public func list(after cursor: String?) async throws(StoreError) -> OpenRecords {
    try await measured(.list) { () throws(StoreError) in try await base.list(after: cursor) }
  }

  public func isCursor(_ text: String) -> Bool { base.isCursor(text) }

  public func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool {
    try await measured(.forget) { () throws(StoreError) in try await base.forget(id, fence: fence) }
  }

  public func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool
  ) async throws(StoreError) -> OwnerOutcome {
    try await measured(.resolve) { () throws(StoreError) in
      try await base.resolve(id, as: resolution, amending: amending)
    }
  }

  public func watch(_ id: RecordID) async throws(StoreError) -> Base.Watch {
    try await measured(.watch) { () throws(StoreError) in try await base.watch(id) }
  }

  /// Not for the two that every first run asks, which are written out: a closure costs each of them two frames more.
  private func measured<Answer>(
    _ command: StoreCommand, _ ask: () async throws(StoreError) -> Answer
  ) async throws(StoreError) -> Answer {
    let began = NIODeadline.now()
    do throws(StoreError) {
      let answer = try await ask()
      answered(command, began)
      return answer
    } catch {
      throw failed(command, error)
    }
  }

  private func answered(_ command: StoreCommand, _ began: NIODeadline) {
    let now = NIODeadline.now()
    metrics.asked(command, microseconds: (now - began).nanoseconds / 1000)
    // Of the commands that write: a store that is full still finds.
    if command == .claim || command == .complete { failures.succeeded(now: now.uptimeNanoseconds) }
  }

  private func failed(_ command: StoreCommand, _ error: StoreError) -> StoreError {
    let failure = StoreFailure(error)
    metrics.failed(command, failure)
    failures.failed(command, failure, error.text, now: NIODeadline.now().uptimeNanoseconds)
    return error
  }
}

extension StoreFailure {
  fileprivate init(_ error: StoreError) {
    switch error {
    case .unavailable, .refused: self = .unavailable
    case .fateUnknown: self = .fateUnknown
    case .unreadable: self = .unreadable
    }
  }
}

/// The outcome of a run whose record another owner had by the time it ended, or that the store has not taken yet.
public struct OvertakenOutcome: Sendable {
  public private(set) var completion: Completion
  private let run: OvertakenClaim
  private let fingerprint: Fingerprint
  private let attempt: Int

  public init(_ completion: Completion, of claim: Claim) {
    self.completion = completion
    run = OvertakenClaim(claim)
    fingerprint = claim.fingerprint
    attempt = claim.attempt
  }

  /// Whether a claim that was granted to another delivery is to have this outcome, so that its request must not run.
  ///
  /// An operator's release of the attempt counts more than a late response: it keeps the number of the attempt, and the
  /// next claim takes nothing over. If an earlier attempt was lost before, a claim looks as if it took over: then the
  /// outcome counts, which the backend has stated.
  public func ends(_ claim: Claim) -> Bool {
    let mayFollowRelease = claim.attempt == attempt + 1 && !claim.followsUnknown
    return isOf(claim) && claim.fingerprint == fingerprint && !mayFollowRelease
  }

  /// Whether a claim is of the same record. If that was forgotten meanwhile, the outcome is no longer wanted.
  public func isOf(_ claim: Claim) -> Bool { run.isOf(claim) }

  /// The same outcome without the response, for which there was no memory.
  public var withoutResponse: OvertakenOutcome {
    var reduced = self
    reduced.completion.outcome = completion.outcome.withoutResponse
    return reduced
  }
}

/// The claim of a run whose record another owner had by the time it ended.
struct OvertakenClaim: Sendable {
  /// The end of the fence of the record that the run owned; `nil` if it had none.
  private let fencedUntil: StoreInstant?

  init(_ claim: Claim) { fencedUntil = claim.fence?.until }

  /// Whether a later claim is of the same record. If that was forgotten meanwhile, the claim carries a later fence. A
  /// fence that has merely ended, or that the store has lost, is gone from the claim.
  func isOf(_ claim: Claim) -> Bool { claim.fence.map { $0.until == fencedUntil } ?? true }
}

extension OwnerOutcome {
  /// Whether another delivery has taken the record over from the owner of a claim: it is running, or has given the
  /// record back. An operator's release keeps the number of the attempt, and counts more than a late response.
  public func statesOvertaken(_ claim: Claim) -> Bool {
    switch self {
    case .lost(.inFlight): true
    case .lost(.released(let attempt)): attempt > claim.attempt
    case .done, .lost, .replaced: false
    }
  }
}

/// The outcome of a run whose record another owner had by the time it ended.
public struct OvertakenOutcome: Sendable {
  public let completion: Completion
  /// The end of the fence of the record that the run owned; `nil` if it had none.
  private let fencedUntil: StoreInstant?

  init(_ completion: Completion, of claim: Claim) {
    self.completion = completion
    fencedUntil = claim.fence?.until
  }

  /// Whether a claim is of the same record. If that was forgotten meanwhile, the fence is another, and the outcome is no
  /// longer wanted.
  public func isOf(_ claim: Claim) -> Bool { claim.fence?.until == fencedUntil }
}

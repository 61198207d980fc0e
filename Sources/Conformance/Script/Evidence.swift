/// One request and what became of it.
public struct Exchange: Equatable, Sendable {
  public enum Outcome: Equatable, Sendable {
    case response(RawResponse)
    /// The client went away on purpose.
    case abandoned
    /// The connection ended, or the response was no HTTP; with the reason.
    case none(String)
    /// The response exceeded a bound of the check (time, size, interim responses); with the reason.
    case endless(String)
  }

  public var request: RawRequest
  public var outcome: Outcome
  /// The times since the script's start at which the last byte was sent, and at which the outcome was there.
  public var sent = Duration.zero
  public var ended = Duration.zero

  public var response: RawResponse? {
    if case .response(let response) = outcome { response } else { nil }
  }
}

/// The number of executions during a script, as far as an oracle knows it.
public enum Executions: Equatable, Sendable {
  case unknown
  case exactly(Int)
  /// The number of ids that were seen in responses; an execution whose response nobody saw is not among them.
  case atLeast(Int)
}

/// All that a case is judged by.
public struct Evidence: Equatable, Sendable {
  /// One for each delivery of the script, in its order.
  public var exchanges: [Exchange] = []
  public var executions = Executions.unknown
  /// Whether two keys got the same result in this run, so that equal results do not show a replay.
  public var keysShareResults = false
  /// The reason for which the oracle gave no reading.
  public var oracleFault: String?
  /// The document to which the last refusal led, and its URL.
  public var documentation = Documentation.notLooked
  /// The expectations of the run's profile.
  public var expected = ExpectedBehaviour.ietf
  /// The text by which each payload differs from the other, and other parts that no refusal may repeat.
  public var confidential: [String] = []

  public enum Documentation: Equatable, Sendable {
    case notLooked
    case noLink
    case elsewhere(String)
    case fetched(String, Exchange.Outcome)
  }

  /// The response to the delivery of this number; `nil` if there was none.
  public subscript(number: Int) -> RawResponse? {
    exchanges.indices.contains(number) ? exchanges[number].response : nil
  }

  public var responses: [RawResponse] { exchanges.compactMap(\.response) }
}

/// The behaviour that a run expects where APIs differ from the draft.
public struct ExpectedBehaviour: Equatable, Sendable {
  public var name: String
  /// The status of a refusal because of another payload.
  public var mismatchStatuses: Set<Int>
  /// Whether a request without a key is refused.
  public var requiresKey: Bool
  /// Whether a duplicate in flight may wait for the first one's result.
  public var allowsWaiting: Bool

  /// Draft-ietf-httpapi-idempotency-key-header-07 to the letter.
  public static let ietf = ExpectedBehaviour(
    name: "ietf", mismatchStatuses: [422], requiresKey: true, allowsWaiting: false)
  /// Stripe's documented behaviour: keys are optional, another payload gets 400.
  public static let stripe = ExpectedBehaviour(
    name: "stripe", mismatchStatuses: [400], requiresKey: false, allowsWaiting: false)
  /// Semel's default: another payload gets 409, and duplicates wait.
  public static let semel = ExpectedBehaviour(
    name: "semel", mismatchStatuses: [409, 422], requiresKey: true, allowsWaiting: true)

  public static let all = [ietf, stripe, semel]
}

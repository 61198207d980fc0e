import NIOCore
import Wire

/// The meaning of a response beyond its status: the backend's instructions, whose fields are removed from the response to
/// the client, and the signs of what became of the request.
public struct Steering: Sendable, Equatable {
  /// `Idempotency-Outcome: final|retry|unknown`.
  public var outcome: OutcomeClass?
  /// Whether the outcome is none of the three words, so that its intention is not known.
  public var hasOtherOutcome = false
  /// `Idempotency-Retention: SECONDS`.
  public var retention: Milliseconds?
  public var signs: ResponseSigns
  /// The rule of the route that the response meets; `nil` for none.
  public var rule: OutcomeRules.Match?

  public init(
    outcome: OutcomeClass? = nil, retention: Milliseconds? = nil, signs: ResponseSigns = ResponseSigns(),
    rule: OutcomeRules.Match? = nil
  ) {
    self.outcome = outcome
    self.retention = retention
    self.signs = signs
    self.rule = rule
  }

  /// Reads the fields of a response. A repeated value counts as one.
  ///
  /// Outcomes that contradict each other, on several lines or in a list, are `unknown`: to guess could run the request
  /// again. A retention that is no number counts as missing.
  ///
  /// - Parameters:
  ///   - body: The whole body; `nil` if it is not known.
  ///   - mayBeCut: Whether only the connection's end delimits the body. It meets no rule then, and lets nothing run
  ///     again.
  ///   - policy: That of the request's route.
  @inline(__always)  // or each call copies the whole policy
  public init(of head: MessageHead, body: ByteBuffer? = nil, mayBeCut: Bool = false, by policy: RoutePolicy) {
    self.init(
      of: head, body: body, mayBeCut: mayBeCut, isGraphQL: policy.match.graphql != nil,
      rules: policy.outcomes.rules)
  }

  @inline(never)
  private init(of head: MessageHead, body: ByteBuffer?, mayBeCut: Bool, isGraphQL: Bool, rules: OutcomeRules?)
  {
    signs = ResponseSigns(of: head, body: body, mayBeCut: mayBeCut, isGraphQL: isGraphQL)
    rule = rules?.match(head, body: mayBeCut ? nil : body)
    var outcomes = FieldValue.missing
    var retentions = FieldValue.missing
    for field in head.fields {
      switch field.name {
      case .idempotencyOutcome: outcomes.add(head.string(field.valueRange))
      case .idempotencyRetention: retentions.add(head.string(field.valueRange))
      default: break
      }
    }
    switch outcomes {
    case .missing: break
    case .one(let word):
      outcome = OutcomeClass(rawValue: word)
      hasOtherOutcome = outcome == nil
    case .several: outcome = .unknown
    }
    if case .one(let digits) = retentions { retention = Self.retention(digits) }
  }

  /// Reads what can be read of a malformed response.
  ///
  /// - Parameter head: The head; `nil` if only the status can be read.
  init(ofMalformed status: Int, _ head: MessageHead?, by policy: RoutePolicy) {
    self = head.map { Steering(of: $0, by: policy) } ?? Steering(signs: .unread)
    rule = policy.outcomes.rules?.match(malformed: status, head)
  }

  private static func retention(_ text: String) -> Milliseconds? {
    guard text.utf8.allSatisfy(ASCII.isDigit) else { return nil }
    // The bound prevents an overflow in the conversion; 2^32 seconds are more than any retention.
    return .seconds(min(Int64(text) ?? .max, 1 << 32))
  }

  /// The class of a response for which the route's table has `listed`. A word that is not understood does not let the
  /// request run again.
  func outcome(listed: OutcomeClass) -> OutcomeClass {
    outcome ?? (hasOtherOutcome && listed == .retry ? .unknown : listed)
  }

  /// Whether a response of class `retry` with this status is a rejection: 401, 403, 429, a persisted query that the
  /// server lacks, or one that a rule of the route has deleted.
  public func isRejection(_ status: Int) -> Bool {
    signs.lacksDocument || isDeletedByRule || [401, 403, 429].contains(status)
  }

  /// Whether a rule decides that the record is forgotten. The backend's own word counts for more.
  private var isDeletedByRule: Bool { rule?.verdict == .deleted && outcome == nil }
}

/// The members of a field that should have one, over all of its lines.
private enum FieldValue {
  case missing
  case one(String)
  /// The field has members that differ from each other.
  case several

  /// Adds the members of one line, in lower case. Empty members do not count (RFC 9110, section 5.6.1).
  mutating func add(_ line: String) {
    for member in line.split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" }) {
      switch self {
      case .missing: self = .one(member.lowercased())
      case .one(let other): if other != member.lowercased() { self = .several }
      case .several: break
      }
    }
  }
}

extension RoutePolicy {
  /// The class of a complete response: by the backend's own steering field, else by the route's rules, else by its
  /// table and what the response says of its sender. A rejection does not count towards `max_attempts`, and is never
  /// final by that.
  ///
  /// - Parameter isBesideUnknown: Whether another intent of the same request follows an unknown outcome.
  public func outcomeClass(
    of status: Int, steering: Steering, claim: Claim, isBesideUnknown: Bool = false
  ) -> OutcomeClass {
    let own = ownClass(of: status, steering: steering, attempt: claim.attempt)
    let isLastAttempt = maxAttempts.map { claim.sendings >= $0 } ?? false
    let isExhausted = isLastAttempt && !steering.isRejection(status)
    let outcome: OutcomeClass = own == .retry && isExhausted ? .final : own
    guard claim.followsUnknown || isBesideUnknown, steering.outcome == nil,
      maySeeLost(status, outcome, steering)
    else { return outcome }
    // A refusal (4xx) of requests that were sent together says of those that were not lost that they did not run.
    return claim.followsUnknown || !(400..<500 ~= status) ? .unknown : .retry
  }

  /// The class that a complete response has where an earlier attempt has ended unknown.
  public func outcomeClassAfterLoss(of status: Int, steering: Steering) -> OutcomeClass {
    let own = ownClass(of: status, steering: steering, attempt: 2)
    return steering.outcome == nil && maySeeLost(status, own, steering) ? .unknown : own
  }

  /// Whether a conflict comes from the backend's own table of keys, which has the request in progress by a delivery beside
  /// this one: it says so, or no attempt of Semel's can be the one that it met.
  private func isBeside(_ signs: ResponseSigns, _ attempt: Int?) -> Bool {
    signs.statesKeyInUse || behind == .ownKeys && attempt == 1
  }

  /// Whether a response after a lost outcome may come from the backend's own check for duplicates, which has met the
  /// attempt that was lost: any final one but a success. A conflict or a failed condition may, of whatever class it is.
  private func maySeeLost(_ status: Int, _ outcome: OutcomeClass, _ steering: Steering) -> Bool {
    let isNamed = steering.rule?.isNamed ?? outcomes.isNamed(status: status)
    guard !(200..<300 ~= status), !isNamed else { return false }
    return switch outcome {
    case .final: true
    case .retry: status == 409 || status == 412
    case .unknown: false
    }
  }

  /// The class that a response has by itself, without regard to `max_attempts` and to a lost outcome.
  ///
  /// - Parameter attempt: The number of the request's attempt; `nil` if it has no record.
  public func ownClass(of status: Int, steering: Steering, attempt: Int?) -> OutcomeClass {
    steering.outcome(listed: listedClass(of: status, steering, attempt))
  }

  private func listedClass(of status: Int, _ steering: Steering, _ attempt: Int?) -> OutcomeClass {
    let signs = steering.signs
    let listed = steering.rule?.verdict.outcome ?? outcomes[status]
    if signs.lacksDocument, listed == .final { return .retry }
    guard steering.rule == nil else { return listed }
    switch status {
    case 409 where (signs.hasRetryAfter || isBeside(signs, attempt)) && !outcomes.isListed(status: status):
      return .retry
    case 408 where signs.mayFollowRun && !outcomes.isListed(status: status): return .unknown
    case 503 where signs.mayFollowRun && !outcomes.isListed(status: status):
      return signs.hasRetryAfter || signs.statesUnsent ? listed : .unknown
    default: return listed
    }
  }

  /// Whether the backend's effect remains unknown after this complete response to a request without a record.
  public func leavesUnknown(_ head: MessageHead) -> Bool {
    ownClass(of: head.status, steering: Steering(of: head, by: self), attempt: nil) == .unknown
  }

  /// The time after which a client may retry with the same key when a response was lost; `nil` if only an operator can
  /// end the record.
  ///
  /// An outcome may settle within `settle` of its loss, and at any time where a later delivery may take the record
  /// over. That waits for `settle` in any case: a backend may go on running a request whose connection has ended.
  ///
  /// - Parameter isOver: Whether the exchange has ended, so that no late response can come.
  public func retryAfterLoss(age: Milliseconds, isOver: Bool = false) -> Milliseconds? {
    if isOver, onUnknown == .hold { return nil }
    let left = upstream.settle - age
    if left > 0 { return left }
    return onUnknown == .hold ? nil : 1000
  }
}

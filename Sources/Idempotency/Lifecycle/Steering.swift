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

import NIOCore
import Wire

/// A rule of a route by which a response gets its class: all of its conditions must hold.
public struct OutcomeRule: Hashable, Sendable {
  /// The consequence of a response for its record.
  public enum Verdict: String, Sendable, CaseIterable {
    case final, retry, unknown
    /// As `retry`, and the record is forgotten as after a rejection, so that another payload may follow.
    case deleted

    public var outcome: OutcomeClass {
      switch self {
      case .final: .final
      case .retry, .deleted: .retry
      case .unknown: .unknown
      }
    }
  }

  /// The value that a field or a member must have.
  public enum Wanted: Hashable, Sendable {
    /// Any value; of JSON, any but null.
    case present
    /// The whole value of a field on each of its lines. Of JSON, a string of this text, or a number or literal that is
    /// written so.
    case text(String)

    /// Whether every value that fits the other one fits this one.
    fileprivate func covers(_ other: Wanted) -> Bool {
      self == .present && other != .text("null") || self == other
    }
  }

  /// A field of the response.
  public struct Field: Hashable, Sendable {
    /// The name in lower case.
    public var name: String
    public var wanted: Wanted

    public init(name: String, wanted: Wanted) {
      self.name = name
      self.wanted = wanted
    }
  }

  /// A member of the JSON body.
  public struct BodyMember: Hashable, Sendable {
    public let pointer: String
    public let wanted: Wanted
    fileprivate let place: JSONPointer

    /// Creates a condition; `nil` if the text is no pointer that begins with a slash.
    public init?(pointer: String, wanted: Wanted) {
      guard pointer.hasPrefix("/"), let place = JSONPointer(pointer) else { return nil }
      self.pointer = pointer
      self.wanted = wanted
      self.place = place
    }
  }

  /// The status codes; empty for any.
  public var statuses: [ClosedRange<Int>] = []
  public var headers: [Field] = []
  public var members: [BodyMember] = []
  public var verdict: Verdict

  public init(_ verdict: Verdict) { self.verdict = verdict }

  public init(
    statuses: [ClosedRange<Int>] = [], headers: [Field] = [], members: [BodyMember] = [], is verdict: Verdict
  ) {
    self.statuses = statuses
    self.headers = headers
    self.members = members
    self.verdict = verdict
  }

  public var hasCondition: Bool { !statuses.isEmpty || !isByStatus }

  /// Whether the status alone decides.
  public var isByStatus: Bool { headers.isEmpty && members.isEmpty }

  /// Whether one of the conditions is a value, and not only that something is there.
  var wantsValue: Bool {
    headers.contains { $0.wanted != .present } || members.contains { $0.wanted != .present }
  }

  public func fits(status: Int) -> Bool { statuses.isEmpty || statuses.contains { $0.contains(status) } }

  /// Whether the rule names this status code alone, and not only a range that has it.
  func names(_ status: Int) -> Bool { statuses.contains(status...status) }

  /// A range as a configuration writes it: `422`, `4xx` or `500-504`.
  public static func text(_ range: ClosedRange<Int>) -> String {
    if range.count == 1 { return "\(range.lowerBound)" }
    let isHundred = range.lowerBound % 100 == 0 && range.count == 100
    return isHundred ? "\(range.lowerBound / 100)xx" : "\(range.lowerBound)-\(range.upperBound)"
  }

  /// Whether a response of a common status that meets the other rule meets this one as well.
  public func covers(conditionsOf other: OutcomeRule) -> Bool {
    headers.allSatisfy { own in
      other.headers.contains { $0.name == own.name && own.wanted.covers($0.wanted) }
    }
      && members.allSatisfy { own in
        other.members.contains { $0.pointer == own.pointer && own.wanted.covers($0.wanted) }
      }
  }
}

extension OutcomeRule {
  func fits(_ head: MessageHead) -> Bool {
    headers.allSatisfy { field in
      let lines = head.fields(named: field.name)
      guard !lines.isEmpty, case .text(let value) = field.wanted else { return !lines.isEmpty }
      return lines.allSatisfy { head.string($0.valueRange) == value }
    }
  }

  fileprivate func fits(_ document: JSONDocument) -> Bool {
    members.allSatisfy { member in
      switch member.wanted {
      case .present: document.hasValue(at: member.place)
      case .text(let text): document.scalar(at: member.place, equals: text)
      }
    }
  }
}

/// The rules of a route in their order, at least one. The first that a response meets counts.
public struct OutcomeRules: Hashable, Sendable {
  /// The maximum number of rules of a route.
  public static let maxCount = 64

  public let list: [OutcomeRule]

  /// Creates the rules of a list; `nil` if it is empty.
  init?(_ list: [OutcomeRule]) {
    guard !list.isEmpty else { return nil }
    self.list = list
  }

  /// A rule that a response meets.
  public struct Match: Sendable, Equatable {
    public let verdict: OutcomeRule.Verdict
    /// Whether the rule names the response's status alone.
    public let isNamed: Bool
    /// The rule's index in the list; `nil` if it cannot be known which one the response meets.
    public let index: Int?
  }

  private func match(_ index: Int, _ status: Int) -> Match {
    Match(verdict: list[index].verdict, isNamed: list[index].names(status), index: index)
  }

  /// Whether the body is read to find the rule that a response meets.
  public func readsBody(of head: MessageHead) -> Bool {
    list.first { $0.fits(status: head.status) && $0.fits(head) }.map { !$0.members.isEmpty } ?? false
  }

  /// The rule that a response meets first; `nil` if it meets none.
  ///
  /// - Parameter body: The whole body; `nil` if it is not known. Like one that is compressed, is no JSON or has a name
  ///   twice in an object, it meets no rule that reads it.
  func match(_ head: MessageHead, body: ByteBuffer?) -> Match? {
    let status = head.status
    let isMet = { (rule: OutcomeRule) in rule.fits(status: status) && rule.fits(head) }
    guard let first = list.firstIndex(where: isMet) else { return nil }
    guard !list[first].members.isEmpty else { return match(first, status) }
    // The body is parsed once, for this rule and those behind it.
    let body = head.hasContentCoding ? ByteBuffer() : body ?? ByteBuffer()
    let index = body.withUnsafeReadableBytes { bytes in
      let parsed = try? JSONParser.parse(bytes)
      let document = parsed.flatMap { $0.hasDuplicates ? nil : $0 }
      return list[first...].firstIndex { rule in
        isMet(rule) && (rule.members.isEmpty || document.map(rule.fits) ?? false)
      }
    }
    return index.map { match($0, status) }
  }

  /// The rule that a malformed response meets first; `nil` if it meets none. One that might be met by what cannot be
  /// read leaves the outcome unknown, since a later one could let the request run again.
  ///
  /// - Parameter head: The head; `nil` if only the status can be read.
  func match(malformed status: Int, _ head: MessageHead?) -> Match? {
    for (index, rule) in list.enumerated() where rule.fits(status: status) {
      if let head, !rule.fits(head) { continue }
      let isCertain = rule.members.isEmpty && (head != nil || rule.headers.isEmpty)
      return isCertain ? match(index, status) : Match(verdict: .unknown, isNamed: false, index: nil)
    }
    return nil
  }
}

/// A table of outcomes by name.
public enum OutcomePreset: String, Sendable, CaseIterable {
  /// The defaults of the contract.
  case standard = "default"
  /// For backends that change nothing when they fail: 2xx is final, all others are retried.
  case successOnly = "success_only"
  /// The defaults, but for what Stripe does not save: a parameter that was refused, and a request beside another one
  /// of its key.
  case stripe

  /// The rules behind those that a route has itself.
  public var rules: [OutcomeRule] {
    switch self {
    case .standard, .successOnly: []
    case .stripe:
      [
        OutcomeRule(
          statuses: [400...400],
          members: Self.members([
            ("/error/type", .text("invalid_request_error")), ("/error/param", .present),
          ]), is: .deleted),
        OutcomeRule(
          statuses: [409...409], members: Self.members([("/error/code", .text("idempotency_key_in_use"))]),
          is: .retry),
      ]
    }
  }

  private static func members(_ wanted: [(String, OutcomeRule.Wanted)]) -> [OutcomeRule.BodyMember] {
    wanted.compactMap { OutcomeRule.BodyMember(pointer: $0, wanted: $1) }
  }

  /// The patterns of class `retry`.
  var retried: [OutcomeTable.Pattern] {
    self == .successOnly ? [.hundred(3), .hundred(4), .hundred(5)] : []
  }
}

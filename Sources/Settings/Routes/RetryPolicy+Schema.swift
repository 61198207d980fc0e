import Idempotency
import Wire

extension RouteDraft {
  mutating func readRetries(_ member: Value) {
    guard member.isMapping else {
      let isOff = member.choice("off, or members such as {max: 2}") { $0 == "off" ? true : nil }
      if isOff == true { policy.retries = nil }
      return
    }
    var retries = policy.retries ?? RetryPolicy()
    member.section { RetryPolicy.schema.read($0, into: &retries) }
    policy.retries = retries
    for item in member["on"]?.elements ?? [] where !item.hasFault {
      item.checkIsRepeated(on: policy.outcomes)
    }
  }
}

extension Value {
  /// Refuses a status that is not of class `retry`: a response that may have been executed is never repeated.
  fileprivate func checkIsRepeated(on outcomes: OutcomeTable) {
    guard let status = text("a status").flatMap(Int.init), !outcomes.mayBeRetried(status) else { return }
    let remedy =
      outcomes.rules == nil
      ? "list it under outcomes.retry" : "write a rule for it in outcomes with is: retry"
    refuse(
      "is of class \(outcomes[status].rawValue) on this route, and never repeated; \(remedy), or take it out"
    )
  }
}

extension RetryPolicy {
  static let schema = Schema(RetryPolicy(), check: { $0.check($1) }) {
    Member("max", \.max, .integer(1...20), "retries of a request")
    Member("backoff", \.backoff, .duration(atLeast: 1), "the bound of the first pause; it doubles")
    Member("max_backoff", \.maxBackoff, .duration(atLeast: 1), "the bound of every pause")
    Member("budget", \.budget, .percentage, "retries in proportion to requests")
    Member("on", \.on, .statuses("a list such as [408, 425, 429, 503]"), "the statuses that are repeated")
  }

  private func check(_ section: Section) {
    guard section.isSound("backoff", "max_backoff"), maxBackoff < backoff else { return }
    let (first, longest) = (backoff.text, maxBackoff.text)
    if let member = section["max_backoff"] {
      member.refuse("must not be shorter than backoff: \(longest) against \(first)")
    } else {
      section["backoff"]?.refuse(
        "must not be longer than max_backoff, which is \(longest) by default: \(first)")
    }
  }
}

extension Notation<Int> {
  fileprivate static let percentage = Notation.text(
    "a percentage such as 20%", values: "0% to 100%", show: { .text("\($0)%") }
  ) { text throws(Refusal) in
    let (count, unit) = Quantity.split(text)
    guard unit == "%", 0...100 ~= count else { throw Refusal("must be from 0% to 100%") }
    return Int(count)
  }

  static let status = Notation.text("a status", show: { .number($0) }) { text throws(Refusal) in
    guard text.utf8.count == 3, let status = Int(text), 200...599 ~= status else {
      throw Refusal("must be a status from 200 to 599")
    }
    return status
  }
}

extension Notation<[Int]> {
  static func statuses(_ wanted: String) -> Notation {
    Notation(
      values: wanted,
      read: { list in list.items(wanted).map { Value.distinct($0, Notation<Int>.status.read) } },
      show: { .list($0.map(Shown.number)) })
  }
}

extension ReplayPolicy {
  static let schema = Schema(ReplayPolicy(), check: { $0.check($1) }) {
    Member(
      "drop", \.drop, .fieldNames("a list such as [X-Request-Id]", Self.dropped),
      "response fields that replays leave out; `X-Trace-*` names all with that beginning")
    Member(
      "keep", \.keep, .fieldNames("a list such as [RateLimit]", Self.kept),
      "of the fields that replays leave out by default, `RateLimit*`, `X-RateLimit*` and `X-Rate-Limit*`, those "
        + "that they carry"
    )
  }

  /// Refuses a field that both lists name, also by the beginning of its name: `drop` would have no effect.
  private func check(_ section: Section) {
    guard section.isSound("drop", "keep"),
      let name = drop.names.first(where: { keep.contains($0) })
        ?? keep.names.first(where: { drop.contains($0) })
    else { return }
    (section["keep"] ?? section["drop"])?.refuse("names \(name), which drop names, too; take one of them out")
  }

  /// The fields without which a client could not read the recorded response.
  private static let needed = [
    "content-type", "content-encoding", "content-length", "transfer-encoding", "content-range",
  ]

  private static func dropped(_ text: String) throws(Refusal) -> String {
    let name = try fieldName(text)
    try require(name != "set-cookie", "has a member of its own; take it out, and write set_cookie: drop")
    let list = FieldNameList([name])
    if let field = needed.first(where: { list.contains($0) }) {
      throw Refusal("leaves out \(field), without which a client cannot read the response; take it out")
    }
    return name
  }

  private static func kept(_ text: String) throws(Refusal) -> String {
    let name = try fieldName(text)
    let beginning = name.hasSuffix("*") ? String(name.dropLast()) : name
    try require(
      FieldNameList.rateLimits.contains(beginning),
      "must be one of RateLimit*, X-RateLimit* and X-Rate-Limit*; the others are recorded, or never can be")
    return name
  }

  /// A field's name, or the beginning of several with a `*`, in lower case.
  private static func fieldName(_ text: String) throws(Refusal) -> String {
    let beginning = text.hasSuffix("*") ? text.dropLast() : text[...]
    try require(
      Token.isToken(beginning) && !beginning.contains("*"),
      "must name a header field, such as X-Request-Id, or the beginning of several, such as X-Trace-*")
    return text.lowercased()
  }
}

extension Notation<FieldNameList> {
  fileprivate static func fieldNames(
    _ wanted: String, _ parse: @escaping @Sendable (String) throws(Refusal) -> String
  ) -> Notation {
    Notation(
      values: wanted,
      read: { $0.list(wanted, of: "a header's name", parse).map { FieldNameList($0) } },
      show: { .texts($0.names) })
  }
}

extension RouteDraft {
  mutating func readForwardKey(_ member: Value) {
    guard member.isMapping else {
      let forwarding = member.choice(KeyForwarding.forms) { text -> KeyForwarding? in
        text == "keep" ? .keep : text == "drop" ? .drop : nil
      }
      if let forwarding { policy.forwardKey = forwarding }
      return
    }
    member.section { section in
      guard let value = section.member("rename") else {
        return section.refuseMissing("rename", "is missing: write a name, such as {rename: X-Original-Key}")
      }
      if let name = value.parsed("a header's name", KeyForwarding.name) { policy.forwardKey = .rename(name) }
    }
  }

  /// Refuses a route's word on the field of a key that no field holds, or that no record is about.
  func checkForwardKey(_ section: Section) {
    guard let member = section["forward_key"], policy.forwardKey != .keep,
      section.isSound("forward_key", "key", "idempotency", "batch")
    else { return }
    if !policy.isProtected {
      member.refuse("has no effect with idempotency: off, which looks for no key; take one of them out")
    } else if policy.keyFields.isEmpty {
      member.refuse("has no effect, since no header is by itself a source in key.from; take it out")
    } else if case .rename(let name) = policy.forwardKey, policy.readFields.contains(name) {
      member.refuse(
        "would put the key in the place of \(name), which the route reads; write another name, such as X-Original-Key"
      )
    }
  }
}

extension KeyForwarding {
  static let forms = "keep, drop or {rename: NAME}"

  /// The name of a field that has no meaning to anybody else, in lower case.
  fileprivate static func name(_ text: String) throws(Refusal) -> String {
    let name = try Token.fieldName(text)
    let field = Array(name.utf8).withUnsafeBytes(FieldName.recognise)
    guard field == .other || field == .idempotencyKey else {
      throw Refusal("names a field that has a meaning of its own; write another name, such as X-Original-Key")
    }
    try require(
      name != "x-idempotency-key",
      "names a field for which Go repeats a request, as for Idempotency-Key; write another name, such as X-Original-Key"
    )
    return name
  }

  var shown: Shown {
    switch self {
    case .keep: .text("keep")
    case .drop: .text("drop")
    case .rename(let name): .members([Shown.Member("rename", .text(name))])
    }
  }
}

extension RoutePolicy {
  /// The fields, in lower case, that the route reads besides those of keys.
  fileprivate var readFields: Set<String> {
    Set(identityHeaders + match.headers.map(\.name)).subtracting(keyFields)
  }

  var forwardKeyWarning: String? {
    guard isEnforced, forwardKey != .keep, behind == .ownKeys, !keyFields.isEmpty else { return nil }
    return
      "leaves the backend's own table of keys (behind: own_keys) without the key, so that what comes beside Semel runs "
      + "a second time; write forward_key: keep, or behind: nothing"
  }
}

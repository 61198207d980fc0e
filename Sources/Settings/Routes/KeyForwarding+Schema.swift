import Idempotency
import Wire

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

import Idempotency
import Wire

extension CORSPolicy {
  static let schema = Schema(CORSPolicy()) {
    Member(
      "origins", \.origins,
      Notation(
        values: "a list such as [https://shop.example]", read: { readOrigins($0) }, show: { .texts($0) }),
      "the origins whose pages may read Semel's own responses"
    ).required(
      "is missing: name the origins whose pages may read Semel's own responses, such as [https://shop.example], "
        + "or write cors: true")
    Member("credentials", \.credentials, .flag, "`true` lets these pages send cookies")
  }

  /// Reads `false`, `true`, or a mapping. Returns `nil` for `false`, and for a value that is refused.
  static func read(_ member: Value) -> CORSPolicy? {
    var policy = CORSPolicy()
    guard member.isMapping else {
      let isOn = member.choice("true, false or {origins: [https://shop.example]}") { Bool($0) }
      return isOn == true ? policy : nil
    }
    member.section { schema.read($0, into: &policy) }
    return policy
  }

  var shown: Shown { origins.isEmpty ? .flag(true) : Self.schema.shown(self) }

  private static func readOrigins(_ member: Value) -> [String]? {
    guard let items = member.items("a list such as [https://shop.example]") else { return nil }
    if items.isEmpty {
      member.refuse("must name an origin, such as https://shop.example; or write cors: true")
    }
    var origins: [String] = []
    for item in items {
      guard let origin = item.parsed("an origin", parseOrigin) else { continue }
      if origins.contains(origin) {
        item.refuse("names an origin twice; take one of them out")
      } else {
        origins.append(origin)
      }
    }
    return origins
  }

  /// Parses an origin in the form in which browsers send it (RFC 6454, section 6.2), since it is compared as it stands.
  private static func parseOrigin(_ text: String) throws(Refusal) -> String {
    if text == "*" {
      throw Refusal("must name each origin, such as https://shop.example; a * would allow every page")
    }
    if text == "null" {
      throw Refusal(
        "must be a page's own origin, such as https://shop.example; every sandboxed page sends null")
    }
    if text.contains("*") {
      throw Refusal("must name each origin, such as https://shop.example; wildcards are not supported")
    }
    let wanted = Refusal(
      "must be an origin as browsers send it, in lower case and without a path: https://shop.example")
    guard text == text.lowercased(), let colon = text.firstIndex(of: ":"),
      text[colon...].hasPrefix("://"), isScheme(text[..<colon])
    else { throw wanted }
    let authority = text[colon...].dropFirst("://".count)
    guard !authority.contains(where: { "/?#@".contains($0) }) else { throw wanted }
    _ = try HostPort.parse(authority, port: 443)
    if text.hasPrefix("https://") && text.hasSuffix(":443")
      || text.hasPrefix("http://") && text.hasSuffix(":80")
    {
      throw Refusal("must leave the scheme's own port out, as browsers do")
    }
    return text
  }

  private static func isScheme(_ text: Substring) -> Bool {
    guard let first = text.utf8.first, ASCII.isLetter(first) else { return false }
    return text.utf8.allSatisfy { ASCII.isLetterOrDigit($0) || "+-.".utf8.contains($0) }
  }
}

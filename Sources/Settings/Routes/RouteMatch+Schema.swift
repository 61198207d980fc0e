import Idempotency
import Wire

extension RouteMatch {
  static let schema = Schema(RouteMatch(), check: { $0.check($1) }) {
    Member("methods", \.methods, .methods, "the methods").identity()
      .standard("all but GET, HEAD, OPTIONS and TRACE; all with `idempotency: off`")
    Member("path", \.path, .path, "`{id}` stands for one segment, `/v1/**` for the rest").identity().standard(
      "all")
    Member("host", \.host, .host, "one host, or `*.example.com`").identity().standard("all")
    Member(
      "headers", \.headers, values: "a mapping of names and values", "the fields that a request must have",
      // A value may be a secret that a gateway adds.
      show: { $0.isEmpty ? nil : .members($0.map { Shown.Member($0.name, .text("(not shown)")) }) },
      read: { $0.readHeaders($1) }
    ).identity()
    Member("graphql", \.graphql, .word, "mutations alone, and what may be one").identity()
  }

  private func check(_ section: Section) {
    if methods.isEmpty, let member = section["methods"], !member.hasFault {
      member.refuse("must name a method; leave methods out for all but GET, HEAD, OPTIONS and TRACE")
    }
    if let text = path?.text, let warning = Self.notationWarning(text) { section["path"]?.warn(warning) }
    guard section["graphql"] != nil,
      let safe = methods.first(where: ["GET", "HEAD", "OPTIONS", "TRACE"].contains)
    else { return }
    section["methods"]?.refuse(
      "has \(safe), but graphql goes by the body, in which POST sends its mutation; take \(safe) out")
  }

  /// The reason why a path may be in another framework's notation; `nil` if there is none. Its `$id` may also be a
  /// literal: OData and FHIR name operations so, the latter behind the name of a type, which begins with a capital.
  private static func notationWarning(_ path: String) -> String? {
    var segments = path.split(separator: "/").prefix { $0.first?.isUppercase != true }
    segments.removeAll {
      $0.first != "$" || $0.count == 1 || $0.contains("-") || operations.contains(String($0))
    }
    guard let segment = segments.first else { return nil }
    let name = segment.dropFirst().prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
    return
      "has the segment \(segment), which stands for these letters alone: if it is a parameter, as TanStack Router "
      + "and Remix write it, the route protects nothing; write {\(name.isEmpty ? "id" : name)} then"
  }

  private static let operations: Set<String> = [
    "$all", "$batch", "$count", "$crossjoin", "$each", "$entity", "$filter", "$metadata", "$query", "$ref",
    "$value",
  ]

  private mutating func readHeaders(_ member: Value) {
    let example = "a mapping such as {X-Api-Version: \"2\"}"
    if member.isMapping, member.names.isEmpty { member.refuse("must name a header: write \(example)") }
    var lines: [String: Int] = [:]
    let read = member.mapped(example) { name, value throws(Refusal) in
      let name = try Token.identityField(name)
      if let line = lines[name] {
        throw Refusal("is the same header as in line \(line), in other letters; take one of them out")
      }
      lines[name] = value.keyPosition.line
      return value.parsed("a header's value", Self.parseHeaderValue).map {
        RequiredHeader(name: name, value: $0)
      }
    }
    headers = read ?? headers
  }

  /// Parses the value of a required header. A value with spaces around it is refused, since it could never match.
  private static func parseHeaderValue(_ text: String) throws(Refusal) -> String {
    let bytes = text.utf8
    guard let first = bytes.first, let last = bytes.last, first > 0x20, last > 0x20,
      bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
    else { throw Refusal("must be a header's whole value, without spaces around it") }
    return text
  }
}

extension Notation<[String]> {
  fileprivate static let methods = Notation(
    values: "a list such as [POST]",
    read: { $0.list("a list such as [POST]", of: "a method", Token.method) },
    show: { $0.isEmpty ? nil : .texts($0) })
}

extension Notation<PathPattern> {
  fileprivate static let path = Notation.text("a path such as /v1/orders/{id}", show: { .text($0.text) }) {
    text throws(Refusal) in
    do throws(PathPattern.ParsingError) {
      return try PathPattern(parsing: text)
    } catch {
      throw Refusal(error.reason)
    }
  }
}

extension Notation<String> {
  fileprivate static let host = Notation.text("a host name", show: { .text($0) }) { text throws(Refusal) in
    if text.hasPrefix("["), text.hasSuffix("]") {
      guard let address = IPAddress(literal: text) else {
        throw Refusal("must have an IPv6 address between [ and ], such as [2001:db8::1]")
      }
      return address.literal
    }
    let name = text.hasPrefix("*.") ? String(text.dropFirst(2)) : text
    guard HostPort.isName(name), !name.hasPrefix(".") else {
      throw Refusal("must be one host name without a port, such as api.example.com or *.example.com")
    }
    // A request's host is compared without the root's dot.
    return String(text.hasSuffix(".") ? text.dropLast() : text[...]).lowercased()
  }
}

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

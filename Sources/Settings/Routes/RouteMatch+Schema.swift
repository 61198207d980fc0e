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

import Idempotency
import Wire

extension RouteMatch {
  mutating func read(_ section: Section) {
    if let list = section.member("methods")?.list("a list such as [POST]", of: "a method", Token.method) {
      if list.isEmpty, let member = section["methods"], section.isSound("methods") {
        member.refuse(
          "must name a method; leave methods out for all but GET, HEAD, OPTIONS and TRACE")
      }
      methods = list
    }
    path = section.member("path")?.parsed("a path such as /v1/orders/{id}") { text throws(Refusal) in
      do throws(PathPattern.ParsingError) {
        return try PathPattern(parsing: text)
      } catch {
        throw Refusal(error.reason)
      }
    }
    if let text = path?.text, let warning = Self.notationWarning(text) { section["path"]?.warn(warning) }
    host = section.member("host")?.parsed("a host name", Self.parseHost)
    if let member = section.member("headers") { readHeaders(member) }
    readGraphQL(section)
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

  private mutating func readGraphQL(_ section: Section) {
    guard let member = section.member("graphql") else { return }
    graphql = member.parsed("mutation") { text throws(Refusal) in
      guard let kind = GraphQL(rawValue: text) else { throw Refusal("must be mutation") }
      return kind
    }
    guard let safe = methods.first(where: ["GET", "HEAD", "OPTIONS", "TRACE"].contains) else { return }
    section["methods"]?.refuse(
      "has \(safe), but graphql goes by the body, in which POST sends its mutation; take \(safe) out")
  }

  private mutating func readHeaders(_ member: Value) {
    let example = "a mapping such as {X-Api-Version: \"2\"}"
    guard let members = member.members(example) else { return }
    if members.isEmpty { member.refuse("must name a header: write \(example)") }
    var first: [String: Value] = [:]
    headers = members.compactMap { name, value in
      do throws(Refusal) {
        let name = try Token.identityField(name)
        if let other = first[name] {
          let line = other.keyPosition.line
          throw Refusal("is the same header as in line \(line), in other letters; take one of them out")
        }
        first[name] = value
        return value.parsed("a header's value", Self.parseHeaderValue)
          .map { RequiredHeader(name: name, value: $0) }
      } catch {
        value.reader.refuse(value.path, at: value.keyPosition, error.message)
        return nil
      }
    }
  }

  /// Parses the value of a required header. A value with spaces around it is refused, since it could never match.
  private static func parseHeaderValue(_ text: String) throws(Refusal) -> String {
    let bytes = text.utf8
    guard let first = bytes.first, let last = bytes.last, first > 0x20, last > 0x20,
      bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
    else { throw Refusal("must be a header's whole value, without spaces around it") }
    return text
  }

  private static func parseHost(_ text: String) throws(Refusal) -> String {
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

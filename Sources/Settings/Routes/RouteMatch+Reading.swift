import Idempotency

extension RouteMatch {
  mutating func read(_ section: Section) {
    if let list = section.member("methods")?.list("a list such as [POST]", of: "a method", Token.method) {
      if list.isEmpty, let member = section["methods"], section.isSound("methods") {
        member.refuse("must name a method; take the member out to match every one")
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
    host = section.member("host")?.parsed("a host name", Self.parseHost)
  }

  private static func parseHost(_ text: String) throws(Refusal) -> String {
    let bare = text.hasPrefix("[") && text.hasSuffix("]") ? try HostPort.parse(text, port: 0).host : text
    guard bare != text || HostPort.isName(text) else {
      throw Refusal("must be one host name without a port, such as api.example.com")
    }
    return text.lowercased()
  }
}

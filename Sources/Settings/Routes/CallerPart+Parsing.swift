import Idempotency

extension CallerPart {
  static let allowed =
    "header:NAME, cookie:NAME, query:NAME, json:/pointer, jwt:CLAIM, client_certificate or address"

  /// Reads a part as a file has it.
  static func read(_ text: String) throws(Refusal) -> CallerPart { try SourceText.parse(text, parse) }

  static func parse(_ text: String) throws(Refusal) -> CallerPart {
    if text == "address" { return .address }
    if text == "client_certificate" { return .clientCertificate(.identity) }
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { throw refusal(of: text) }
    switch parts[0] {
    case "header": return .header(try Token.identityField(parts[1]))
    case "cookie":
      guard Token.isToken(parts[1]) else { throw Refusal("must name a cookie, such as cookie:session") }
      return .cookie(String(parts[1]))
    case "query":
      guard !parts[1].isEmpty else { throw Refusal("must name a query parameter, such as query:account") }
      return .query(String(parts[1]))
    case "jwt":
      guard !parts[1].isEmpty else { throw Refusal("must name a claim of the token, such as jwt:sub") }
      // A claim's name may itself be a URL, and then has no slash at its start.
      if parts[1].hasPrefix("/") { return .jwt(try JSONPointer.parse(parts[1])) }
      return .jwt(String(parts[1]))
    case "json": return .json(try JSONPointer.parse(parts[1]))
    case "client_certificate":
      guard let part = CallerPart.CertificatePart(rawValue: String(parts[1])), part != .identity else {
        throw Refusal("must be client_certificate, client_certificate:subject or client_certificate:san")
      }
      return .clientCertificate(part)
    default: throw refusal(of: text)
    }
  }

  private static func refusal(of text: String) -> Refusal {
    SourceText.refusal(of: text, allowed: allowed, words: ["address", "client_certificate"])
  }
}

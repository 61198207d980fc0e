import Idempotency

extension CallerPart {
  static let allowed = "header:NAME, cookie:NAME or address"

  static func parse(_ text: String) throws(Refusal) -> CallerPart {
    if text == "address" { return .address }
    if text == "client_certificate" || text.hasPrefix("jwt:") {
      throw Refusal("\(text.hasPrefix("jwt:") ? "jwt:" : text) is not supported yet; write \(allowed)")
    }
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { throw Refusal("must be \(allowed)") }
    switch parts[0] {
    case "header": return .header(try Token.fieldName(parts[1]))
    case "cookie":
      guard Token.isToken(parts[1]) else { throw Refusal("must name a cookie, such as cookie:session") }
      return .cookie(String(parts[1]))
    default: throw Refusal("must be \(allowed)")
    }
  }
}

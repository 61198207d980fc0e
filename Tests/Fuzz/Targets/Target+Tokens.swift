@testable import Idempotency

extension Target {
  private static let now: Int64 = 1_800_000_000
  private static let names: Set<String> = ["sub", "/realm/user", ""]

  /// Bearer tokens, and the payloads of tokens whose signature is valid.
  static func tokensFault(in bytes: [UInt8]) -> String? {
    if let token = CompactToken(bytes) {
      guard bytes.starts(with: token.signed), bytes.dropFirst(token.signed.count).first == UInt8(ascii: ".")
      else {
        return "other bytes are verified than those that came"
      }
      if let fault = payloadFault(token.payload) { return fault }
    }
    return payloadFault(bytes)
  }

  private static func payloadFault(_ payload: [UInt8]) -> String? {
    var rules = TokenRules()
    let open = rules.read(payload, claims: names, now: now)
    if case .success(let token) = open, let end = token.endsAt, end <= now {
      return "an expired token is accepted"
    }
    rules.issuer = "https://id.example"
    rules.audience = "orders"
    guard case .success(let token) = rules.read(payload, claims: names, now: now) else { return nil }
    guard case .success(let same) = open, same.claims == token.claims, same.endsAt == token.endsAt else {
      return "a token of the issuer is another one for those who name none"
    }
    let issuer = Array("https://id.example".utf8)
    for case .text(let text) in token.claims.values where !text.dropFirst().contains(issuer) {
      return "a claim does not name its issuer"
    }
    return nil
  }
}

import Idempotency
import Wire

/// Tokens that were refused in the last seconds, by their digests: whoever repeats a forged one costs no verification.
struct RefusedTokens {
  /// The maximum number of tokens. Past that all are forgotten, which costs a verification each.
  private static let maxTokens = 4096
  /// The time for which a token is remembered, in seconds.
  private static let span: Int64 = 5

  private var tokens: [Digest256: (fault: TokenFault, until: Int64)] = [:]
  /// The edition of the keys by which they were refused.
  private var edition = 0

  /// The fault of the token with this digest, if it was refused by this edition of the keys.
  ///
  /// - Parameter now: The time in seconds since 1970.
  func find(_ digest: Digest256, edition: Int, now: Int64) -> TokenFault? {
    guard edition == self.edition, let token = tokens[digest], now < token.until else { return nil }
    return token.fault
  }

  /// Remembers a token that was refused by this edition of the keys. A newer edition empties the memory, an older one
  /// changes nothing.
  mutating func insert(_ digest: Digest256, _ fault: TokenFault, edition: Int, now: Int64) {
    guard edition >= self.edition else { return }
    if edition > self.edition || tokens.count >= Self.maxTokens { tokens = [:] }
    self.edition = edition
    tokens[digest] = (fault, now + Self.span)
  }
}

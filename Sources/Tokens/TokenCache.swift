import Idempotency
import Wire

/// Tokens that were verified, by their digests. Two generations bound it: what is used moves to the young one, and when
/// that is full, the old one is dropped.
struct TokenCache {
  /// The maximum number of tokens in each generation, and of bytes in their claims.
  private static let maxTokens = 8192
  private static let maxBytes = 4 << 20
  /// The approximate memory of an entry besides its claims.
  private static let entryBytes = 128

  private var young: [Digest256: VerifiedToken] = [:]
  private var old: [Digest256: VerifiedToken] = [:]
  private var youngBytes = 0
  /// The edition of the keys by which the tokens were verified.
  private var edition = 0

  var count: Int { young.count + old.count }

  /// The token with this digest, if it was verified by this edition of the keys and has not ended.
  ///
  /// - Parameter now: The time in seconds since 1970.
  mutating func find(_ digest: Digest256, edition: Int, now: Int64) -> VerifiedToken? {
    guard edition == self.edition else { return nil }
    if let token = young[digest] { return isAccepted(token, now) ? token : nil }
    guard let token = old.removeValue(forKey: digest), isAccepted(token, now) else { return nil }
    insertYoung(digest, token)
    return token
  }

  /// Keeps a token that was verified by this edition of the keys. A newer edition empties the cache, an older one
  /// changes nothing.
  mutating func insert(_ digest: Digest256, _ token: VerifiedToken, edition: Int) {
    guard edition >= self.edition else { return }
    if edition > self.edition {
      self = TokenCache()
      self.edition = edition
    }
    insertYoung(digest, token)
  }

  private mutating func insertYoung(_ digest: Digest256, _ token: VerifiedToken) {
    if young.count >= Self.maxTokens || youngBytes >= Self.maxBytes {
      old = young
      young = [:]
      youngBytes = 0
    }
    if young.updateValue(token, forKey: digest) == nil { youngBytes += Self.entryBytes + token.bytes }
  }

  private func isAccepted(_ token: VerifiedToken, _ now: Int64) -> Bool {
    token.endsAt.map { now < $0 } ?? true
  }
}

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

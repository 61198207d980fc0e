import Idempotency
import Platform
import Synchronization
import Wire

/// Verifies tokens by the keys of a source, of a secret, or not at all.
public final class SignedTokens: TokenVerifier {
  /// The origin of the keys.
  public enum Keys: Sendable {
    case source(KeySetSource)
    case secret(Secret)
    /// Signatures are not verified: somebody in front of Semel has done that.
    case unverified
  }

  private enum Trust: Sendable {
    case source(KeySetSource)
    case fixed(KeySet)
    case unverified
  }

  private let trust: Trust
  private let rules: TokenRules
  private let claims: Set<String>
  private let tally: TokenTally
  private let cache = Mutex(TokenCache())
  private let refusals = Mutex(RefusedTokens())

  /// - Parameters:
  ///   - claims: The claims that name callers.
  ///   - tally: The counts, which continue when other rules take the place of these.
  public init(_ keys: Keys, rules: TokenRules, claims: Set<String>, tally: TokenTally) async {
    trust =
      switch keys {
      case .source(let source): .source(source)
      case .secret(let secret): .fixed(await KeySet(secret: secret, algorithms: rules.algorithms))
      case .unverified: .unverified
      }
    self.rules = rules
    self.claims = claims
    self.tally = tally
  }

  private static var now: Int64 { Int64(WallClock.seconds()) }

  /// The number of tokens that are kept.
  public var cachedCount: Int { cache.withLock { $0.count } }

  private var edition: Int {
    if case .source(let source) = trust { source.edition } else { 0 }
  }

  public func known(_ token: [UInt8]) -> TokenReading? {
    let (digest, edition) = (Digest256.sha256(of: token), edition)
    if let known = cache.withLock({ $0.find(digest, edition: edition, now: Self.now) }) {
      tally.hits.add(1, ordering: .relaxed)
      return .verified(known)
    }
    guard let fault = refusals.withLock({ $0.find(digest, edition: edition, now: Self.now) }) else {
      return nil
    }
    tally.refused(fault)
    return .refused(fault)
  }

  public func remember(_ check: TokenCheck, of token: [UInt8]) {
    let (fault, edition): (TokenFault, Int)
    switch check {
    case .verified: return
    case .refused(let met, let checked), .keyUnknown(let met, let checked): (fault, edition) = (met, checked)
    }
    // Time or new keys may mend any other fault.
    guard fault == .untrusted || fault == .malformed else { return }
    let digest = Digest256.sha256(of: token)
    refusals.withLock { $0.insert(digest, fault, edition: edition, now: Self.now) }
  }

  public func cost(of token: [UInt8]) -> Int {
    guard let (name, keyID) = CompactToken.statement(of: token),
      let algorithm = TokenAlgorithm(rawValue: name)
    else { return Self.malformedCost }
    let tries =
      switch trust {
      case .unverified: 0
      case .fixed(let set): set.tries(for: keyID, by: algorithm)
      case .source(let source): source.keys.0.tries(for: keyID, by: algorithm)
      }
    return Self.readingCost + tries * algorithm.verificationTime
  }

  /// The times for reading a token, and of one whose header says nothing, which comes last. In microseconds.
  private static let readingCost = 10
  private static let malformedCost = 1000

  public func check(_ text: [UInt8]) -> TokenCheck {
    let (check, edition) = check(CompactToken(text))
    switch check {
    case .verified(let token):
      tally.verified.add(1, ordering: .relaxed)
      let digest = Digest256.sha256(of: text)
      cache.withLock { $0.insert(digest, token, edition: edition) }
    case .refused(let fault, _), .keyUnknown(let fault, _): tally.refused(fault)
    }
    return check
  }

  public func awaitNewKeys(since edition: Int) async -> Bool {
    guard case .source(let source) = trust else { return false }
    return await source.awaitNewKeys(since: edition)
  }

  private func check(_ token: CompactToken?) -> (TokenCheck, edition: Int) {
    guard let token else {
      let edition = edition
      return (.refused(.malformed, edition: edition), edition)
    }
    switch trust {
    case .unverified: return (read(token, edition: 0), 0)
    case .fixed(let set): return (check(token, by: set, edition: 0, isFinal: true), 0)
    case .source(let source):
      let (set, edition) = source.keys
      return (check(token, by: set, edition: edition, isFinal: false), edition)
    }
  }

  private func check(_ token: CompactToken, by set: KeySet, edition: Int, isFinal: Bool) -> TokenCheck {
    // The token never chooses beyond this list, and each key serves the algorithms of its own kind alone.
    guard let algorithm = TokenAlgorithm(rawValue: token.algorithm), rules.algorithms.contains(algorithm)
    else { return .refused(.untrusted, edition: edition) }
    func refused(_ fault: TokenFault) -> TokenCheck {
      isFinal ? .refused(fault, edition: edition) : .keyUnknown(fault, edition: edition)
    }
    guard !set.isEmpty else { return refused(.keysMissing) }
    guard set.verifies(token, by: algorithm) else {
      // The key that the token names has not signed it.
      return set.holdsKey(of: token) ? .refused(.untrusted, edition: edition) : refused(.untrusted)
    }
    return read(token, edition: edition)
  }

  private func read(_ token: CompactToken, edition: Int) -> TokenCheck {
    switch rules.read(token.payload, claims: claims, now: Self.now) {
    case .success(let token): .verified(token)
    case .failure(let fault): .refused(fault, edition: edition)
    }
  }
}

/// The counts of tokens in this process.
public final class TokenTally: Sendable {
  let hits = Atomic<Int>(0)
  let verified = Atomic<Int>(0)
  private let faults = Mutex<[TokenFault: Int]>([:])

  public init() {}

  /// The number of requests whose token had been verified before.
  public var hitCount: Int { hits.load(ordering: .relaxed) }

  public var verifiedCount: Int { verified.load(ordering: .relaxed) }

  public func refusedCount(_ fault: TokenFault) -> Int { faults.withLock { $0[fault] ?? 0 } }

  func refused(_ fault: TokenFault) { faults.withLock { $0[fault, default: 0] += 1 } }
}

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

import FoundationEssentials
import Idempotency

/// The keys and the rules by which tokens are verified.
public struct JWTSettings: Hashable, Sendable {
  /// The origin of the keys.
  public enum Keys: Hashable, Sendable {
    /// The path of a file with a JWK set.
    case file(String)
    /// The URL of a JWK set.
    case url(String)
    /// A file whose first line is the secret that issuers share with Semel.
    case secret(path: String, Secret)
    /// Signatures are not verified: somebody in front of Semel has done that.
    case unverified
  }

  public var keys: Keys
  public var rules = TokenRules()

  public init(keys: Keys) { self.keys = keys }
}

extension JWTSettings {
  private static let sources = ["jwks_file", "jwks_url", "hmac_secret_file", "verify"]

  static let schema = Schema(JWTSettings(keys: .unverified), check: { $0.check($1) }) {
    Member("jwks_file", \.keys, .keyFile, "a JWK set; of the first four members there is one").standard(
      "none")
    Member("jwks_url", \.keys, .keyURL, "the URL of a JWK set").standard("none")
    Member(
      "hmac_secret_file", \.keys, .secret,
      "a file whose first line is the issuers' secret, of 32 bytes or more"
    )
    .standard("none")
    Member("verify", \.keys, .verify, "`none`: a gateway in front verifies all tokens").standard(
      "tokens are verified")
    Member("issuer", \.rules.issuer, .text("the issuer of the tokens"), "the value that `iss` must have")
      .standard("any")
    Member(
      "audience", \.rules.audience, .text("the audience of the tokens"), "a value that `aud` must contain"
    )
    .standard("any")
    // A longer one would keep tokens alive that were meant to end.
    Member("leeway", \.rules.leeway, .duration(atMost: .seconds(600)), "the time by which clocks may differ")
    // They depend on the keys: `check` reads them.
    Member(
      "algorithms", \.rules.algorithms, values: "a list such as [RS256]",
      "for a set `RS256` to `RS512`, `PS256` to `PS512`, `ES256` to `ES512` and `EdDSA`; for a secret `HS256` to `HS512`",
      show: { $0.isEmpty ? nil : .texts($0.map(\.rawValue)) }, read: { _, _ in }
    ).standard("all of the keys' kind")
  }

  private mutating func check(_ section: Section) {
    let given = Self.sources.filter { section[$0] != nil }
    guard given.count == 1 else { return Self.refuse(given, section) }
    guard section.isSound(given[0]) else { return }
    rules.algorithms = algorithms(section["algorithms"])
    warn(section)
  }

  private static func refuse(_ given: [String], _ section: Section) {
    guard !given.isEmpty else {
      return section.refuseMissing(
        "jwks_file",
        "is missing: name the keys by jwks_file, jwks_url or hmac_secret_file, or write verify: none where a gateway in "
          + "front verifies tokens")
    }
    for name in given.dropFirst() {
      section[name]?.refuse(
        "contradicts \(given[0]): one of them says who verifies tokens; take the other out")
    }
  }

  private func warn(_ section: Section) {
    if case .url(let url) = keys, url.hasPrefix("http://"), !Self.isLoopback(url) {
      section["jwks_url"]?.warn(
        "is not secured by TLS: whoever can respond in its place can make tokens of any caller; write https")
    }
    if case .unverified = keys {
      section["verify"]?.warn(
        "accepts tokens that nobody has verified: make sure that only what verifies them can connect to Semel"
      )
    } else if rules.audience == nil {
      section.value.warn(
        "names no audience: a token that was made for another service names a caller here, too")
    }
  }

  private static func isLoopback(_ url: String) -> Bool {
    let rest = url.dropFirst("http://".count).prefix { $0 != "/" }
    let host = rest.hasPrefix("[") ? rest.prefix { $0 != "]" } + "]" : rest.prefix { $0 != ":" }
    return ["localhost", "127.0.0.1", "[::1]"].contains(host.lowercased())
  }
}

extension Notation<JWTSettings.Keys> {
  fileprivate static let keyFile = Notation.text(
    "the path of a JWK set", show: { if case .file(let path) = $0 { .text(path) } else { nil } },
    parse: { text throws(Refusal) in .file(try JWTSettings.keyFile(text)) })

  fileprivate static let keyURL = Notation.text(
    "the URL of a JWK set", show: { if case .url(let url) = $0 { .target(url) } else { nil } },
    parse: { text throws(Refusal) in .url(try JWTSettings.keyURL(text)) })

  fileprivate static let secret = Notation.text(
    "the path of a file that holds a secret",
    show: { if case .secret(let path, _) = $0 { .text(path) } else { nil } },
    parse: { text throws(Refusal) in .secret(path: text, try JWTSettings.secret(text)) })

  fileprivate static let verify = Notation.choice(
    "none", show: { if case .unverified = $0 { .text("none") } else { nil } },
    choose: { $0 == "none" ? .unverified : nil })
}

extension JWTSettings {
  private struct Document: Decodable {
    struct Key: Decodable { let kty: String? }
    let keys: [Key]
  }

  fileprivate static func keyFile(_ path: String) throws(Refusal) -> String {
    guard !path.isEmpty else { throw Refusal("must not be empty: write the path of a JWK set") }
    let bytes: [UInt8]
    do throws(SecretFile.Fault) {
      bytes = try SecretFile.content(of: path, maxBytes: 1 << 20, isReadAgain: true)
    } catch {
      throw Refusal("names \(path), which \(error)")
    }
    guard let document = try? JSONDecoder().decode(Document.self, from: Data(bytes)),
      document.keys.contains(where: { ["RSA", "EC", "OKP"].contains($0.kty ?? "") })
    else {
      throw Refusal(
        "names a file that is no JWK set with public keys: {\"keys\": [{\"kty\": \"RSA\", …}]}")
    }
    return path
  }

  fileprivate static func keyURL(_ text: String) throws(Refusal) -> String {
    let rest = ["http://", "https://"].first { text.hasPrefix($0) }.map { text.dropFirst($0.count) }
    let host = rest?.split(separator: "/", omittingEmptySubsequences: false).first ?? ""
    guard let rest, !host.isEmpty, !rest.contains(where: { $0.isWhitespace || $0 == "#" }) else {
      throw Refusal("must be an http or https URL, such as https://id.example.com/.well-known/jwks.json")
    }
    guard !host.contains("@") else { throw Refusal("must have no user and password: a key set is public") }
    return text
  }

  fileprivate static func secret(_ path: String) throws(Refusal) -> Secret {
    let secret = try SecretFile.named(path)
    guard secret.revealed.utf8.count >= TokenAlgorithm.hs256.minSecretBytes ?? 0 else {
      throw Refusal("names a file whose secret has less than 32 bytes, which could be guessed (RFC 7518)")
    }
    return secret
  }

  private var possible: [TokenAlgorithm] {
    switch keys {
    case .file, .url: TokenAlgorithm.allCases.filter { $0.minSecretBytes == nil }
    case .secret(_, let secret):
      TokenAlgorithm.allCases.filter { $0.minSecretBytes.map { $0 <= secret.revealed.utf8.count } ?? false }
    case .unverified: []
    }
  }

  private func algorithms(_ member: Value?) -> [TokenAlgorithm] {
    guard let member else { return possible }
    if case .unverified = keys {
      member.refuse("has no effect with verify: none; take one of them out")
      return []
    }
    let words = possible.map(\.rawValue).asAlternatives
    let list = member.list("a list such as [RS256]", of: "an algorithm") { text throws(Refusal) in
      if text.lowercased() == "none" { throw Refusal("would accept tokens of anybody; write \(words)") }
      guard let algorithm = TokenAlgorithm(rawValue: text) else { throw Refusal("must be \(words)") }
      if let bytes = algorithm.minSecretBytes, case .secret = keys, !possible.contains(algorithm) {
        throw Refusal("needs a secret of at least \(bytes) bytes (RFC 7518); write \(words)")
      }
      try require(
        possible.contains(algorithm),
        "is for another kind of keys than these: with it a public key could pass for a secret; write \(words)"
      )
      return algorithm
    }
    if list?.isEmpty == true, !member.hasFault { member.refuse("must name at least one: \(words)") }
    return list ?? []
  }
}

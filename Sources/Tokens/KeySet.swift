import FoundationEssentials
import Idempotency
import JWTKit
import Platform

/// The keys by which signatures are verified.
struct KeySet: Sendable {
  private struct Use: Hashable {
    let id: String?
    let algorithm: TokenAlgorithm
  }

  /// The number of keys of a set that are used. Each is parsed at each reading, one of RSA for six algorithms.
  static let maxKeys = 256
  static let maxTries = 8
  /// The number of keys with names that are tried for a token that names none, as forgers do.
  static let maxNamedTries = 3

  private var ids: Set<String> = []
  /// The keys of each use, at most `maxTries`, in the order of the document.
  private var verifiers: [Use: [any JWTAlgorithm]] = [:]
  private var firstNamed: [TokenAlgorithm: [any JWTAlgorithm]] = [:]

  /// The number of distinct keys, each of which may serve several algorithms.
  private(set) var count = 0
  /// The number of keys in the set that no algorithm can use, such as those for encryption.
  private(set) var unusable = 0
  /// The number of keys in the set beyond `maxKeys`.
  private(set) var beyondLimit = 0
  /// The number of keys that are tried for no token by at least one of their algorithms: too many come before them.
  private(set) var untried = 0

  var isEmpty: Bool { verifiers.isEmpty }

  var leftOut: Int { beyondLimit + untried }

  /// Whether the key that a token names is in the set; false for a token that names none.
  func holdsKey(of token: CompactToken) -> Bool {
    token.keyID.map { ids.contains($0) } ?? false
  }

  /// Whether one of the keys has signed the token, by the algorithm that it states: first the key that it names, then
  /// those without a name (RFC 7515, section 4.1.4). For a token that names none, any key counts.
  func verifies(_ token: CompactToken, by algorithm: TokenAlgorithm) -> Bool {
    candidates(for: token.keyID, by: algorithm).contains { verifier in
      (try? verifier.verify(token.signature, signs: token.signed)) == true
    }
  }

  func tries(for keyID: String?, by algorithm: TokenAlgorithm) -> Int {
    candidates(for: keyID, by: algorithm).count
  }

  private func candidates(for keyID: String?, by algorithm: TokenAlgorithm) -> ArraySlice<any JWTAlgorithm> {
    let unnamed = verifiers[Use(id: nil, algorithm: algorithm)] ?? []
    let all: [any JWTAlgorithm] =
      if let keyID {
        (verifiers[Use(id: keyID, algorithm: algorithm)] ?? []) + unnamed
      } else {
        unnamed + (firstNamed[algorithm] ?? [])
      }
    return all.prefix(Self.maxTries)
  }
}

/// The reason why there are no keys.
public struct KeySetFault: Error, Equatable, CustomStringConvertible {
  public let description: String

  public init(_ description: String) { self.description = description }

  /// The fault of a document of more than `KeySetSource.maxBytes`.
  public static let tooLarge = KeySetFault(
    "it is larger than \(KeySetSource.maxBytes >> 20) MiB, the limit of a JWK set; take keys that sign no more out of it"
  )
}

extension KeySet {
  /// A key set's document (RFC 7517, section 5). Keys that cannot be read do not spoil the others.
  private struct Document: Decodable {
    let keys: [Entry]
  }

  private struct Entry: Decodable {
    let key: JWK?
    /// Whether its owner permits it for signatures (RFC 7517, sections 4.2 and 4.3).
    let maySign: Bool

    private enum CodingKeys: String, CodingKey {
      case use
      case operations = "key_ops"
    }

    init(from decoder: any Decoder) throws {
      key = try? JWK(from: decoder)
      let container = try? decoder.container(keyedBy: CodingKeys.self)
      let use = try? container?.decode(String.self, forKey: .use)
      let operations = try? container?.decode([String].self, forKey: .operations)
      maySign = use != "enc" && operations?.contains("verify") != false
    }
  }

  /// Reads a JWK set. Symmetric keys in it are not used: a set is public.
  init(document bytes: [UInt8]) async throws(KeySetFault) {
    let document: Document
    do {
      document = try JSONDecoder().decode(Document.self, from: Data(bytes))
    } catch {
      throw KeySetFault("it is no JWK set: a JSON object with a list of keys")
    }
    beyondLimit = max(document.keys.count - Self.maxKeys, 0)
    for entry in document.keys.prefix(Self.maxKeys) { await add(entry) }
    guard !isEmpty else {
      throw KeySetFault("it has no key for signatures by RSA (2048 bits or more), EC or Ed25519")
    }
  }

  /// The keys of a secret that issuer and Semel share.
  init(secret: Secret, algorithms: [TokenAlgorithm]) async {
    let bytes = Array(secret.revealed.utf8)
    for algorithm in algorithms where bytes.count >= algorithm.minSecretBytes ?? .max {
      let keys = JWTKeyCollection()
      await keys.add(hmac: HMACKey(from: bytes), digestAlgorithm: algorithm.digest)
      guard let verifier = try? await keys.getKey() else { continue }
      verifiers[Use(id: nil, algorithm: algorithm)] = [verifier]
    }
    count = isEmpty ? 0 : 1
  }

  private mutating func add(_ entry: Entry) async {
    var made: [(TokenAlgorithm, any JWTAlgorithm)] = []
    if var key = entry.key, entry.maySign {
      // A set needs no private keys, and one in it is not used as such.
      key.privateExponent = nil
      for algorithm in key.algorithms {
        if let verifier = await Self.verifier(of: key, by: algorithm) { made.append((algorithm, verifier)) }
      }
    }
    guard !made.isEmpty else {
      unusable += 1
      return
    }
    let id = entry.key?.keyIdentifier?.string
    var kept = 0
    for (algorithm, verifier) in made where add(verifier, for: Use(id: id, algorithm: algorithm)) {
      kept += 1
    }
    if kept > 0 { count += 1 }
    if kept < made.count { untried += 1 }
  }

  /// Returns false if as many others as are tried come before it.
  private mutating func add(_ verifier: any JWTAlgorithm, for use: Use) -> Bool {
    guard verifiers[use, default: []].count < Self.maxTries else { return false }
    verifiers[use, default: []].append(verifier)
    guard let id = use.id else { return true }
    ids.insert(id)
    if firstNamed[use.algorithm, default: []].count < Self.maxNamedTries {
      firstNamed[use.algorithm, default: []].append(verifier)
    }
    return true
  }

  private static func verifier(of key: JWK, by algorithm: TokenAlgorithm) async -> (any JWTAlgorithm)? {
    var key = key
    key.algorithm = JWK.Algorithm(rawValue: algorithm.rawValue)
    // The library keeps keys by name alone.
    key.keyIdentifier = JWKIdentifier(string: key.keyIdentifier?.string ?? "")
    let collection = JWTKeyCollection()
    guard (try? await collection.add(jwk: key)) != nil else { return nil }
    return try? await collection.getKey(for: key.keyIdentifier, alg: algorithm.rawValue)
  }
}

extension JWK {
  fileprivate var algorithms: [TokenAlgorithm] {
    let all: [TokenAlgorithm] =
      switch keyType {
      case .rsa: [.rs256, .rs384, .rs512, .ps256, .ps384, .ps512]
      case .ecdsa: [.es256, .es384, .es512]
      case .octetKeyPair: [.eddsa]
      default: []
      }
    return algorithm.map { own in all.filter { $0.rawValue == own.rawValue } } ?? all
  }
}

extension TokenAlgorithm {
  /// The time of one verification, in microseconds; of use as a ratio.
  var verificationTime: Int {
    switch self {
    case .hs256, .hs384, .hs512: 3
    case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512: 40
    case .es256, .eddsa: 80
    case .es384: 500
    case .es512: 900
    }
  }

  fileprivate var digest: DigestAlgorithm {
    switch self {
    case .rs384, .ps384, .es384, .hs384: .sha384
    case .rs512, .ps512, .es512, .hs512: .sha512
    default: .sha256
    }
  }
}

/// The times at which a key set is fetched, in milliseconds of a clock that never runs backwards. Pure.
struct KeyRefresh {
  /// The time between two fetches, so that a key that its issuer has withdrawn is not accepted for longer.
  static let period: Int64 = 10 * 60_000
  /// The minimum time between two fetches because of unknown keys, whose names anybody may invent.
  static let unknownKeyPause: Int64 = 60_000
  /// The time before the first repetition of a failed fetch, and the last.
  static let firstPause: Int64 = 1000
  static let maxPause: Int64 = 60_000

  private(set) var isFetching = false
  /// The number of fetches in a row that have failed.
  private(set) var failures = 0
  private var pauses = Backoff(first: firstPause, max: maxPause)
  private var dueAt: Int64 = 0
  private var unknownKeyAt: Int64?

  mutating func begins(at now: Int64, hasChanged: Bool) -> Bool {
    guard !isFetching, hasChanged || now >= dueAt else { return false }
    isFetching = true
    return true
  }

  enum UnknownKeyAction { case fetch, awaitFetch, giveUp }

  mutating func keyUnknown(at now: Int64) -> UnknownKeyAction {
    guard !isFetching else { return .awaitFetch }
    if let last = unknownKeyAt, now - last < Self.unknownKeyPause { return .giveUp }
    unknownKeyAt = now
    isFetching = true
    return .fetch
  }

  mutating func ended(isSuccess: Bool, at now: Int64) {
    isFetching = false
    if isSuccess {
      failures = 0
      pauses.reset()
      dueAt = now + Self.period
    } else {
      failures += 1
      dueAt = now + pauses.next()
    }
  }
}

import FoundationEssentials
import Idempotency
import JWTKit

/// The keys by which signatures are verified.
struct KeySet: Sendable {
  /// A key for one algorithm.
  struct Key: Sendable {
    let id: String?
    let algorithm: TokenAlgorithm
    let verifier: any JWTAlgorithm
  }

  /// The number of keys of a set that are used. Sets of issuers hold a few.
  private static let maxKeys = 64
  /// The number of keys that are tried for a token which names none.
  private static let maxTries = 8

  private(set) var keys: [Key] = []
  /// The number of keys in the set that no algorithm can use, such as those for encryption.
  private(set) var unusable = 0

  /// The number of distinct keys, each of which may serve several algorithms.
  private(set) var count = 0

  /// Whether the key that a token names is in the set; false for a token that names none.
  func holdsKey(of token: CompactToken) -> Bool {
    token.keyID.map { id in keys.contains { $0.id == id } } ?? false
  }

  /// Whether one of the keys has signed the token, by the algorithm that it states.
  func verifies(_ token: CompactToken, by algorithm: TokenAlgorithm) -> Bool {
    let candidates = keys.lazy.filter { key in
      key.algorithm == algorithm && (token.keyID == nil || key.id == nil || key.id == token.keyID)
    }
    return candidates.prefix(Self.maxTries).contains { key in
      (try? key.verifier.verify(token.signature, signs: token.signed)) == true
    }
  }
}

/// The reason why there are no keys.
public struct KeySetFault: Error, Equatable, CustomStringConvertible {
  public let description: String

  public init(_ description: String) { self.description = description }
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
    for entry in document.keys.prefix(Self.maxKeys) {
      let before = keys.count
      if var key = entry.key, entry.maySign {
        // A set needs no private keys, and one in it is not used as such.
        key.privateExponent = nil
        for algorithm in key.algorithms { await add(key, algorithm) }
      }
      if keys.count > before { count += 1 } else { unusable += 1 }
    }
    guard !keys.isEmpty else {
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
      self.keys.append(Key(id: nil, algorithm: algorithm, verifier: verifier))
    }
    count = self.keys.isEmpty ? 0 : 1
  }

  private mutating func add(_ key: JWK, _ algorithm: TokenAlgorithm) async {
    var key = key
    key.algorithm = JWK.Algorithm(rawValue: algorithm.rawValue)
    let id = key.keyIdentifier?.string
    // The library keeps keys by name alone.
    key.keyIdentifier = JWKIdentifier(string: id ?? "")
    let collection = JWTKeyCollection()
    guard (try? await collection.add(jwk: key)) != nil,
      let verifier = try? await collection.getKey(for: key.keyIdentifier, alg: algorithm.rawValue)
    else { return }
    keys.append(Key(id: id, algorithm: algorithm, verifier: verifier))
  }
}

extension JWK {
  /// The algorithms of its type, or the one that it is for.
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
  fileprivate var digest: DigestAlgorithm {
    switch self {
    case .rs384, .ps384, .es384, .hs384: .sha384
    case .rs512, .ps512, .es512, .hs512: .sha512
    default: .sha256
    }
  }
}

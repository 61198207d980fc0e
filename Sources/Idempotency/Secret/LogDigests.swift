import Crypto
import Synchronization
import Wire

/// The short digests that identify keys and callers in logs, keyed so that a value cannot be found by trial.
///
/// All nodes of a namespace use the same digest for a value once they share a secret. Until then, each process uses a
/// secret of its own.
public final class LogDigests: Sendable {
  /// A key of 32 bytes for this purpose only.
  private final class Key: Sendable {
    let bytes: [UInt8]

    init(of secret: Secret) {
      // Separates this key from other uses of the secret.
      let purpose = Array("semel log digests".utf8)
      let code = HMAC<SHA256>.authenticationCode(
        for: purpose, using: SymmetricKey(data: Array(secret.revealed.utf8)))
      bytes = Array(code)
    }
  }

  private let own = Key(of: LogDigests.randomSecret())
  private let shared = AtomicLazyReference<Key>()

  /// Creates the digests of a process.
  ///
  /// - Parameter secret: The secret that all nodes share, if it is configured.
  public init(secret: Secret? = nil) {
    if let secret { share(secret) }
  }

  /// Whether the secret of all nodes is known.
  public var isShared: Bool { shared.load() != nil }

  /// Switches all later digests to the secret of all nodes. Only the first call has an effect.
  public func share(_ secret: Secret) { _ = shared.storeIfNil(Key(of: secret)) }

  /// A secret for a new namespace: 64 random hexadecimal digits.
  public static func randomSecret() -> Secret {
    var generator = SystemRandomNumberGenerator()
    return Secret((0..<4).map { _ in generator.next().hexText }.joined())
  }

  /// A digest of what `feed` writes after the secret.
  func keyed(_ feed: (inout FramedHash) -> Void) -> Digest256 {
    let key = shared.load() ?? own
    return FramedHash.digest { hash in
      hash.byte(UInt8(ascii: "M"))
      key.bytes.withUnsafeBytes { hash.frame($0) }
      feed(&hash)
    }
  }

  /// A digest of eight hexadecimal digits: enough to find a value again in a log.
  ///
  /// The secret precedes the value in one SHA-256. With only 32 bits shown, this is as good as an HMAC, and costs half
  /// as much per request.
  func text(_ value: [UInt8]) -> String {
    let key = shared.load() ?? own
    return FramedHash.digest { hash in
      hash.byte(UInt8(ascii: "L"))
      key.bytes.withUnsafeBytes { hash.frame($0) }
      value.withUnsafeBytes { hash.frame($0) }
    }.shortText
  }
}

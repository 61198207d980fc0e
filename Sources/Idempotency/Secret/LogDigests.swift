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
    /// The key of the short digests.
    let short: SipHash

    init(of secret: Secret) {
      bytes = Self.derived(from: secret, for: "semel log digests")
      short = SipHash(key: Self.derived(from: secret, for: "semel short log digests"))
    }

    /// A key that no other use of the secret shares.
    private static func derived(from secret: Secret, for purpose: String) -> [UInt8] {
      Array(
        HMAC<SHA256>.authenticationCode(
          for: Array(purpose.utf8), using: SymmetricKey(data: Array(secret.revealed.utf8))))
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

  /// The short digests by the secret of all nodes; `nil` until that is known. A reader of several digests takes this
  /// once, since looking the secret up costs as much as a digest.
  public var ofAllNodes: ShortDigests? { shared.load().map { ShortDigests(hash: $0.short) } }

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
  /// With only 32 bits shown, a keyed hash of 64 bits serves as well as an HMAC, at a twentieth of its time; every
  /// first run makes two of them.
  func text(_ value: [UInt8]) -> String { ShortDigests(hash: (shared.load() ?? own).short).text(value) }
}

/// The short digests by one secret.
public struct ShortDigests: Sendable {
  let hash: SipHash

  public func text(of key: IdempotencyKey) -> String { text(key.bytes) }
  public func text(of caller: Caller) -> String { text(caller.framed) }

  func text(_ value: [UInt8]) -> String {
    UInt32(truncatingIfNeeded: value.withUnsafeBytes(hash.digest) >> 32).hexText
  }
}

import Crypto
import Synchronization

/// The short digests by which logs name keys and callers, keyed so that nobody can find a value by trying.
///
/// All nodes of a namespace name a value alike once they share a secret; until then each process has one of its own.
public final class LogDigests: Sendable {
  /// 32 bytes that only this purpose has.
  private final class Key: Sendable {
    let bytes: [UInt8]

    init(of secret: Secret) {
      // Apart from what else the secret keys.
      let purpose = Array("semel log digests".utf8)
      let code = HMAC<SHA256>.authenticationCode(
        for: purpose, using: SymmetricKey(data: Array(secret.revealed.utf8)))
      bytes = Array(code)
    }
  }

  private let own = Key(of: LogDigests.randomSecret())
  private let shared = AtomicLazyReference<Key>()

  /// - Parameter secret: that of all nodes where it is configured.
  public init(secret: Secret? = nil) {
    if let secret { share(secret) }
  }

  /// Whether the secret of all nodes is known.
  public var isShared: Bool { shared.load() != nil }

  /// Makes every digest from now on by the secret of all nodes; the first one counts.
  public func share(_ secret: Secret) { _ = shared.storeIfNil(Key(of: secret)) }

  /// 64 random hexadecimal digits: a new namespace's secret.
  public static func randomSecret() -> Secret {
    var generator = SystemRandomNumberGenerator()
    return Secret(
      (0..<4).map { _ in
        let word = String(generator.next() as UInt64, radix: 16)
        return String(repeating: "0", count: 16 - word.utf8.count) + word
      }.joined())
  }

  /// Eight hexadecimal digits: enough to find a key again in a log.
  ///
  /// The secret stands before the value in one SHA-256. That is as good as an HMAC where only 32 bits are told, and
  /// costs a request half of it.
  func text(_ value: [UInt8]) -> String {
    let key = shared.load() ?? own
    return FramedHash.digest { hash in
      hash.byte(UInt8(ascii: "L"))
      key.bytes.withUnsafeBytes { hash.frame($0) }
      value.withUnsafeBytes { hash.frame($0) }
    }.shortText
  }
}

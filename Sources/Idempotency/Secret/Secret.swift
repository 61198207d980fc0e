import Crypto
import Synchronization
import Wire

/// A text that is never shown: neither by interpolation nor by `dump`, a debugger's summary or any other reflection.
///
/// Code that needs the text must use `revealed`, which can be searched for.
public struct Secret: Sendable, Hashable {
  /// The text itself, for the one place that sends it or computes with it.
  public let revealed: String

  public init(_ text: String) { revealed = text }
}

extension Secret: ExpressibleByStringLiteral {
  public init(stringLiteral text: String) { self.init(text) }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "(redacted)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

/// The key for record ids (`id_secret_file`), as the two padded blocks of HMAC-SHA-256 (RFC 2104).
///
/// It must never change: other ids mean other records, and every retry would run again.
public struct IdentityKey: Sendable, Hashable {
  let inner: [UInt8]
  let outer: [UInt8]

  public init(_ secret: Secret) {
    var key = Array(secret.revealed.utf8)
    if key.count > 64 { key = Array(SHA256.hash(data: key)) }
    key += Array(repeating: 0, count: 64 - key.count)
    inner = key.map { $0 ^ 0x36 }
    outer = key.map { $0 ^ 0x5C }
  }
}

extension IdentityKey: CustomStringConvertible, CustomReflectable {
  public var description: String { "(redacted)" }
  public var customMirror: Mirror { Mirror(self, children: EmptyCollection<Mirror.Child>()) }
}

/// SipHash-2-4, a keyed hash of 64 bits for short inputs (Aumasson and Bernstein, 2012).
///
/// Without the key of 128 bits, nobody can find a value by trial. swift-crypto has no such function, and that of the
/// standard library has a key of its own in each process.
struct SipHash: Sendable {
  private let key: (UInt64, UInt64)

  /// - Parameter key: At least 16 bytes, of which the first 16 count.
  init(key: [UInt8]) {
    invariant(key.count >= 16, "a key of fewer than 16 bytes")
    self.key = key.withUnsafeBytes { (Self.word($0, at: 0), Self.word($0, at: 8)) }
  }

  /// The hash of these bytes.
  func digest(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    var state = State(key)
    let whole = bytes.count & ~7
    for offset in stride(from: 0, to: whole, by: 8) { state.absorb(Self.word(bytes, at: offset)) }
    var last = UInt64(truncatingIfNeeded: bytes.count) << 56
    for offset in whole..<bytes.count { last |= UInt64(bytes[offset]) << (8 * (offset - whole)) }
    state.absorb(last)
    return state.end()
  }

  private static func word(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  private struct State {
    private var (v0, v1, v2, v3): (UInt64, UInt64, UInt64, UInt64)

    init(_ key: (UInt64, UInt64)) {
      (v0, v1) = (key.0 ^ 0x736f_6d65_7073_6575, key.1 ^ 0x646f_7261_6e64_6f6d)
      (v2, v3) = (key.0 ^ 0x6c79_6765_6e65_7261, key.1 ^ 0x7465_6462_7974_6573)
    }

    mutating func absorb(_ word: UInt64) {
      v3 ^= word
      round()
      round()
      v0 ^= word
    }

    mutating func end() -> UInt64 {
      v2 ^= 0xFF
      for _ in 0..<4 { round() }
      return v0 ^ v1 ^ v2 ^ v3
    }

    private mutating func round() {
      v0 &+= v1
      v1 = Self.rotated(v1, 13) ^ v0
      v0 = Self.rotated(v0, 32)
      v2 &+= v3
      v3 = Self.rotated(v3, 16) ^ v2
      v0 &+= v3
      v3 = Self.rotated(v3, 21) ^ v0
      v2 &+= v1
      v1 = Self.rotated(v1, 17) ^ v2
      v2 = Self.rotated(v2, 32)
    }

    private static func rotated(_ word: UInt64, _ bits: UInt64) -> UInt64 {
      word &<< bits | word &>> (64 - bits)
    }
  }
}

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

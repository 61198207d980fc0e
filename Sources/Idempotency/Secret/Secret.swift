import Crypto

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

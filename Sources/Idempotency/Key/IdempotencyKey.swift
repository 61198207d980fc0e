/// A client's name for one intent: visible ASCII bytes, checked by its route's rules.
public struct IdempotencyKey: Hashable, Sendable {
  public let bytes: [UInt8]

  init(checked bytes: [UInt8]) { self.bytes = bytes }

  /// A keyed digest of it, which a log may hold.
  public func digestText(by digests: LogDigests) -> String { digests.text(bytes) }
}

/// What can be said of a key before the body is there.
public enum KeyFinding: Hashable, Sendable {
  case found(IdempotencyKey)
  /// A source that ranks before any that yielded a key is in the body.
  case needsBody
  case missing
}

/// What one source holds.
enum KeyReading {
  /// Nothing, or an empty text.
  case none
  /// Bytes that the route's rules have still to allow.
  case key([UInt8])
  case fault(KeyFault)
}

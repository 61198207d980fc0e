/// A client's name for one operation: visible ASCII bytes that satisfy the rules of a route.
public struct IdempotencyKey: Hashable, Sendable {
  public let bytes: [UInt8]

  init(checked bytes: [UInt8]) { self.bytes = bytes }

  /// A keyed digest of the key, for logs.
  public func digestText(by digests: LogDigests) -> String { digests.text(bytes) }
}

/// The result of a search for the key before the body has arrived.
public enum KeyFinding: Hashable, Sendable {
  case found(IdempotencyKey)
  /// A source in the body comes before any source that yielded a key, so the body must be read.
  case needsBody
  case missing
}

/// The result of reading one source.
enum KeyReading {
  /// The source is missing or empty.
  case none
  /// The bytes of a key, not yet checked against the route's rules.
  case key([UInt8])
  case fault(KeyFault)
}

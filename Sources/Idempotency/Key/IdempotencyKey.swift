import Wire

/// A client's name for one operation: visible ASCII bytes, and spaces from between quotes, that satisfy the rules of a
/// route, or one that is made from several values or from the payload.
public struct IdempotencyKey: Hashable, Sendable {
  /// The first byte of a key that is made from other values. No client's own key contains it, so that the kinds never
  /// collide. The numbers enter every record's id and must never change.
  private enum Kind: UInt8 {
    case composite = 0
    case payload = 1
  }

  public let bytes: [UInt8]

  init(checked bytes: [UInt8]) { self.bytes = bytes }

  /// Creates the key of several values, each of which follows its length.
  init(parts: [[UInt8]]) {
    var bytes = [Kind.composite.rawValue]
    for part in parts {
      bytes.appendLength(part.count)
      bytes += part
    }
    self.bytes = bytes
  }

  /// Creates the key of a payload, whose fingerprint is by the recipe of keys.
  init(payload: Fingerprint) {
    invariant(payload.recipe == payload.recipe.ofKeys, "another recipe's key finds other records")
    bytes = [Kind.payload.rawValue] + (0..<32).map { payload.digest[$0] }
  }

  /// Whether the key is the payload's fingerprint, which clients with equal payloads have in common.
  public var isOfPayload: Bool { bytes.first == Kind.payload.rawValue }

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
  /// The same from between quotes, where spaces are a part of the key.
  case quoted([UInt8])
  case fault(KeyFault)
}

/// The reason why a key in a request is not valid.
public enum KeyFault: Hashable, Sendable, CaseIterable {
  /// A source contains the key twice, and a field different ones.
  case repeated
  /// The value begins with a quote and is not a complete string of RFC 8941.
  case malformedString
  /// A bare key in a header field contains a comma: it may be two keys, or a list.
  case comma
  /// The key contains a byte outside 21 to 7E, but for spaces between other characters of a quoted one.
  case illegalByte
  case tooLong
  case tooShort
  case notUUID
  /// A query or form contains a `%` that begins no encoded byte.
  case malformedEncoding
  /// The JSON value is neither a string nor an integer.
  case wrongType
  /// The body that may contain the key cannot be read.
  case unreadableBody
  /// The query may contain the key in a form that some readers take for it and others do not.
  case hidden
  /// The key names nothing: it is the text of a missing value, or a template that was not filled in.
  case placeholder
  /// The date of the first delivery, which the profile `repeatability` demands, is missing or no date.
  case firstSent
}

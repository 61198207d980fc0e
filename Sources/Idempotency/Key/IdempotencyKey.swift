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

/// The date of a request's first delivery, as the profile `repeatability` demands it beside the key (OASIS Repeatable
/// Requests 1.0).
extension Route {
  private static let field = "repeatability-first-sent"

  /// Refuses a request without that date, with a date alone, and with one after which the record may be gone: nobody
  /// could tell then whether the request has run.
  ///
  /// - Parameter now: The wall clock in seconds since 1970.
  public func refuseUnrepeatable(
    _ head: MessageHead, _ finding: KeyFinding, now: () -> Int
  ) throws(Problem) {
    guard policy.profile == .repeatability else { return }
    switch head.find(Self.field) {
    case .absent where finding == .missing: return
    case .once where finding == .missing: throw .keyMissing(policy.key)
    case .once(let range):
      guard let date = head.withBytes(range, { HTTPDate.parse($0, now: now) }) else { break }
      // Later than the end of the record's memory, which begins with its completion.
      guard Int64(now() - date) * 1000 <= policy.remember.count else { throw .firstSentTooLongAgo }
      return
    case .absent, .repeated: break
    }
    throw .keyInvalid(.firstSent, policy: policy.key)
  }
}

extension MessageHead {
  /// Whether the request is made by that standard, whose clients look for 501 where it is not followed.
  fileprivate var isRepeatable: Bool {
    if case .absent = find("repeatability-request-id") { false } else { true }
  }
}

extension Problem {
  /// A key came with `unmatched_keys: refuse` on a route that protects nothing, or without a route.
  public static func keyNotSupported(in head: MessageHead) -> Problem {
    head.isRepeatable ? .keyNotSupported.with(status: 501) : .keyNotSupported
  }
}

/// Texts that clients send in place of a key which they do not have.
///
/// Two operations of one client would be one by such a key: the second gets the first one's response, or is refused
/// until that is forgotten.
enum KeyPlaceholder {
  /// The texts that languages make of a missing value, and the UUID that is none (RFC 9562, section 5.9).
  private static let texts: [StaticString] = [
    "undefined", "null", "none", "nan", "nil", "[object object]", "00000000-0000-0000-0000-000000000000",
  ]

  /// Whether the key is such a text, in any letter case, or contains a template that was not filled in: `${id}`, `{{id}}`.
  static func isOne(_ key: [UInt8]) -> Bool {
    key.withUnsafeBytes { key in
      for text in texts where text.utf8CodeUnitCount == key.count && ASCII.equalsIgnoringCase(key, text) {
        return true
      }
      guard let brace = key.firstIndex(of: UInt8(ascii: "{")) else { return false }
      return isTemplate(key[brace...], after: brace == 0 ? nil : key[brace - 1])
    }
  }

  /// Whether a text that begins with a brace has a template: a dollar sign before a brace that is closed, or two braces
  /// that are.
  private static func isTemplate(_ text: Slice<UnsafeRawBufferPointer>, after previous: UInt8?) -> Bool {
    let (open, close) = (UInt8(ascii: "{"), UInt8(ascii: "}"))
    var (last, isOpen, isDouble) = (previous, false, false)
    for byte in text {
      if byte == open {
        isOpen = isOpen || last == UInt8(ascii: "$")
        isDouble = isDouble || last == open
      } else if byte == close, isOpen || isDouble && last == close {
        return true
      }
      last = byte
    }
    return false
  }
}

/// A key in a header field: bare, or as a string of RFC 8941 (section 3.3.3).
///
/// Parameters after the string are refused like anything else there: none is defined, and a key that is only partly
/// understood is worse than an error.
enum HeaderKey {
  /// The maximum length of a value: the longest key that a route may allow has 8,000 bytes, and as a string a backslash
  /// before each of them.
  private static let maxBytes = 16_002

  /// Reads the key in a field's value.
  ///
  /// - Parameter value: The value without the white space around it.
  static func read(_ value: UnsafeRawBufferPointer) -> KeyReading {
    guard let first = value.first else { return .none }
    guard value.count <= maxBytes else { return .fault(.tooLong) }
    if first == UInt8(ascii: "\"") { return readString(value) }
    if value.contains(UInt8(ascii: ",")) { return .fault(.comma) }
    return .key(Array(value))
  }

  private static func readString(_ value: UnsafeRawBufferPointer) -> KeyReading {
    var key: [UInt8] = []
    key.reserveCapacity(value.count)
    var position = 1
    while position < value.count {
      switch value[position] {
      case UInt8(ascii: "\""):
        guard position == value.count - 1 else { return .fault(.malformedString) }
        return key.isEmpty ? .none : .quoted(key)
      case UInt8(ascii: "\\"):
        position += 1
        guard position < value.count, isEscapable(value[position]) else { return .fault(.malformedString) }
        key.append(value[position])
      case 0x20...0x7E: key.append(value[position])
      default: return .fault(.malformedString)
      }
      position += 1
    }
    return .fault(.malformedString)
  }

  private static func isEscapable(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
  }
}

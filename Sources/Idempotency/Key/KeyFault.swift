/// The reason why a key in a request is not valid.
public enum KeyFault: Hashable, Sendable, CaseIterable {
  /// A source contains the key twice.
  case repeated
  /// The value begins with a quote and is not a complete string of RFC 8941.
  case malformedString
  /// A bare key in a header field contains a comma: it may be two keys, or a list.
  case comma
  /// The key contains a byte outside 21 to 7E.
  case illegalByte
  case tooLong
  case tooShort
  case notUUID
  /// A query or form contains a `%` that begins no encoded byte.
  case malformedEncoding
  /// The JSON value is neither a string nor an integer.
  case wrongType
}

/// What is wrong with a key that a request does carry.
public enum KeyFault: Hashable, Sendable, CaseIterable {
  /// A source holds it twice.
  case repeated
  /// It begins with a quote and is not wholly a string of RFC 8941.
  case malformedString
  /// A comma in a bare header key: two keys, or a list.
  case comma
  /// A byte outside 21 to 7E.
  case illegalByte
  case tooLong
  case tooShort
  case notUUID
  /// A `%` in a query or form that begins no encoded byte.
  case malformedEncoding
  /// A JSON member that is neither a string nor an integer.
  case wrongType
}

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

extension [UInt8] {
  /// Appends text as a JSON string, with its quotes.
  public mutating func appendJSONString(_ text: some StringProtocol) {
    append(UInt8(ascii: "\""))
    appendEscaped(text.utf8)
    append(UInt8(ascii: "\""))
  }

  /// Appends text with the escapes that it needs between the quotes of a JSON string (RFC 8259, section 7). DEL is
  /// escaped, too, so that no terminal takes it for a command.
  public mutating func appendEscaped(_ text: some Sequence<UInt8>) {
    for byte in text {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        append(UInt8(ascii: "\\"))
        append(byte)
      case 0x00...0x1F, 0x7F:
        append(contentsOf: (byte < 16 ? "\\u000" : "\\u00").utf8)
        append(contentsOf: String(byte, radix: 16).utf8)
      default:
        append(byte)
      }
    }
  }
}

extension UnsafeBufferPointer<UInt8> {
  /// Whether the bytes are the same between the quotes of a JSON string: `appendEscaped` would escape none.
  public var isPlainInJSON: Bool {
    // One that stops at the first byte to escape would look at them one by one.
    var found: UInt8 = 0
    for byte in self {
      let isEscaped =
        byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
      found |= isEscaped ? 1 : 0
    }
    return found == 0
  }
}

extension String {
  /// The text as a JSON string, with its quotes.
  public var jsonString: String {
    var bytes: [UInt8] = []
    bytes.appendJSONString(self)
    return String(decoding: bytes, as: UTF8.self)
  }
}

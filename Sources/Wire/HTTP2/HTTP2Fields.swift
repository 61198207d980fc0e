import NIOCore

/// The rules for single fields in HTTP/2 (RFC 9113, section 8.2), besides those for all versions.
enum HTTP2Fields {
  static func check(name: String, value: String) throws(WireError) {
    try check(name: name)
    guard name != "te" || value == "trailers" else { throw .badConnection }
    guard !isSpace(value.utf8.first), !isSpace(value.utf8.last) else { throw .badFieldValue }
    // The decoder puts U+FFFD for bytes that are not UTF-8, so two different keys or callers may have become one.
    guard !hasReplacement(value) else { throw .badFieldValue }
  }

  /// Whether the text contains U+FFFD. Plain ASCII is read eight bytes at a time, the rest a scalar at a time.
  private static func hasReplacement(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { text in
      let bytes = UnsafeRawBufferPointer(text)
      var at = 0
      while at + 3 <= bytes.count {
        let byte = bytes[at]
        if byte < 0x80 {
          at += at + 8 <= bytes.count && Word.isASCII(Word.load(bytes, at)) ? 8 : 1
        } else if byte == 0xEF, bytes[at + 1] == 0xBF, bytes[at + 2] == 0xBD {
          return true
        } else {
          at += byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4
        }
      }
      return false
    }
  }

  static func check(name: String) throws(WireError) {
    guard name.utf8.first != ASCII.colon else { throw .badPseudoField }
    guard !name.utf8.contains(where: { $0 &- 0x41 < 26 }) else { throw .badFieldName }
    switch name {
    case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade": throw .badConnection
    default: break
    }
  }

  /// Checks a head against the limits. The size counts 32 bytes more for each field, as in RFC 9113, section 6.5.2. The
  /// pieces of a divided `Cookie` (section 8.2.3) are one field.
  static func checkSize(_ fields: [(name: String, value: String)], limits: HeadLimits) throws(WireError) {
    var size = 0
    var cookies = 0
    for (name, value) in fields {
      size += name.utf8.count + value.utf8.count + 32
      if name == "cookie" { cookies += 1 }
    }
    guard fields.count - max(cookies - 1, 0) <= limits.maxFields else { throw .tooManyFields }
    guard size <= limits.headBytes else { throw .headTooLarge }
  }

  /// Checks a field against the limit on a line, with the colon, the space and the line's end that it has in HTTP/1.1.
  static func checkLine(
    name: some StringProtocol, value: some StringProtocol, limits: HeadLimits
  ) throws(WireError) {
    guard name.utf8.count + value.utf8.count + 4 <= limits.lineBytes else { throw .headTooLarge }
  }

  private static func isSpace(_ byte: UInt8?) -> Bool { byte == ASCII.space || byte == ASCII.tab }
}

/// The trailers of an HTTP/2 request.
public enum HTTP2Trailers {
  /// The field lines to forward, each ended by CRLF, by the same rules as the trailers of HTTP/1.1.
  public static func lines(
    _ fields: [(name: String, value: String)], limits: HeadLimits = HeadLimits()
  ) throws(WireError) -> ByteBuffer {
    try HTTP2Fields.checkSize(fields, limits: limits)
    var section = MessageHead(start: .status(0, reason: 0..<0))
    for (name, value) in fields {
      try HTTP2Fields.checkLine(name: name, value: value, limits: limits)
      try HTTP2Fields.check(name: name, value: value)
      try section.append(name: name, value: value)
    }
    return try Trailers.lines(section.fields, in: section.bytes, ofResponse: false)
  }
}

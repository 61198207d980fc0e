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

/// Checks the length of a body against its head's declaration in HTTP/2, whose frames mark the end themselves.
public struct BodyLength: Sendable {
  /// The number of bytes that are still to come; `nil` if no length was declared.
  private var left: Int?

  public init(_ framing: BodyFraming) {
    switch framing {
    case .none: left = 0
    case .length(let length): left = length
    case .chunked: left = nil
    }
  }

  public init(response framing: ResponseHead.Framing) {
    switch framing {
    case .none: left = 0
    case .length(let length): left = length
    case .chunked, .untilClose: left = nil
    }
  }

  /// Counts bytes of the body. Throws `badContentLength` if they exceed the declared length.
  public mutating func add(_ count: Int) throws(WireError) {
    guard let left else { return }
    guard count <= left else { throw .badContentLength }
    self.left = left - count
  }

  /// Ends the body. Throws `badContentLength` if it is shorter than declared.
  public func end() throws(WireError) {
    guard left == nil || left == 0 else { throw .badContentLength }
  }
}

/// An upper bound on the size of a head after HPACK coding. NIO does not split a head over frames, and a head that is
/// too large fails the whole connection, with the requests of others on it.
public enum HPACKBound {
  /// The frame size that every peer accepts, in bytes (RFC 9113, section 6.5.2).
  public static let frameBytes = 16 << 10
  /// The maximum number of bytes for a field's form and lengths, and for the rounding of its two texts.
  public static let fieldBytes = 10
  /// The maximum number of bits for one byte of text.
  public static let byteBits = 60

  /// The number of bits, above `0`, of each byte from a space to `~` in the Huffman code (RFC 7541, appendix B).
  private static let codeLengths: StaticString =
    "6::<=68;::8;8666555666666678?6<:=67777777777777777777777878=C=>6?56565666577666567655677777?;>="

  /// The maximum number of bits for a byte in the Huffman code, which NIO always uses.
  public static func maxBits(for byte: UInt8) -> Int {
    // At most 30 bits, for each of two bytes if the text is read as ISO 8859-1.
    guard 0x20...0x7E ~= byte else { return byteBits }
    return Int(codeLengths.utf8Start[Int(byte) - 0x20]) - 0x30
  }

  /// The maximum number of bytes for a text.
  public static func maxBytes(for text: some Sequence<UInt8>) -> Int {
    (text.reduce(0) { $0 + maxBits(for: $1) } + 7) / 8
  }
}

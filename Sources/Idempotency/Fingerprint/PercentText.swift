import Wire

/// The decoded bytes of a percent-encoded name or value, read one by one without a copy.
struct PercentText: IteratorProtocol {
  /// The treatment of encoded bytes.
  enum Reading: Sendable {
    /// The equivalence of URIs (RFC 3986, section 6.2.2): unreserved bytes are decoded, other encodings are in upper
    /// case. Two queries that a backend might distinguish stay different.
    case normalised
    /// Every encoded byte is decoded.
    case decoded
    /// The encoding of forms (WHATWG URL): every encoded byte is decoded, and `+` is a space.
    case form
  }

  private let bytes: UnsafeRawBufferPointer
  private let reading: Reading
  private var position = 0
  /// The number of an encoding's digits that are still to be returned in upper case.
  private var digits = 0

  init(_ bytes: UnsafeRawBufferPointer, as reading: Reading) {
    self.bytes = bytes
    self.reading = reading
  }

  /// The next byte. A `%` that two digits do not follow represents itself.
  @inline(__always)
  mutating func next() -> UInt8? {
    guard position < bytes.count else { return nil }
    let byte = bytes[position]
    position += 1
    if digits > 0 {
      digits -= 1
      return 0x61...0x66 ~= byte ? byte & ~0x20 : byte
    }
    guard byte == UInt8(ascii: "%") else {
      return byte == UInt8(ascii: "+") && reading == .form ? 0x20 : byte
    }
    guard position + 2 <= bytes.count, let high = ASCII.hexValue(bytes[position]),
      let low = ASCII.hexValue(bytes[position + 1])
    else { return byte }
    let value = high << 4 | low
    if reading == .normalised, !Self.isUnreserved(value) {
      digits = 2
      return byte
    }
    position += 2
    return value
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
    default: false
    }
  }

  /// Decodes into memory at least as large as `bytes`, which always suffices, and returns the number of bytes written.
  @inline(__always)
  static func decode(
    _ bytes: UnsafeRawBufferPointer, as reading: Reading, to memory: UnsafeMutableRawBufferPointer
  ) -> Int {
    var count = 0
    // Most names are plain, and many are too short for a call.
    while count < bytes.count {
      let byte = bytes[count]
      guard byte != UInt8(ascii: "%"), byte != UInt8(ascii: "+") else { break }
      memory[count] = byte
      count += 1
    }
    guard count < bytes.count else { return count }
    return count
      + decodeRest(
        UnsafeRawBufferPointer(rebasing: bytes[count...]), as: reading,
        to: UnsafeMutableRawBufferPointer(rebasing: memory[count...]))
  }

  private static func decodeRest(
    _ bytes: UnsafeRawBufferPointer, as reading: Reading, to memory: UnsafeMutableRawBufferPointer
  ) -> Int {
    var text = PercentText(bytes, as: reading)
    var count = 0
    while let byte = text.next() {
      memory[count] = byte
      count += 1
    }
    return count
  }

  /// Whether nothing is encoded, so that the bytes need no decoding.
  static func isPlain(_ bytes: UnsafeRawBufferPointer, as reading: Reading) -> Bool {
    for byte in bytes where byte == UInt8(ascii: "%") || byte == UInt8(ascii: "+") && reading == .form {
      return false
    }
    return true
  }
}

extension PercentText {
  /// Whether two digits follow every `%`.
  static func isWellFormed(_ bytes: UnsafeRawBufferPointer) -> Bool {
    for (index, byte) in bytes.enumerated() where byte == UInt8(ascii: "%") {
      guard index + 2 < bytes.count, ASCII.hexValue(bytes[index + 1]) != nil,
        ASCII.hexValue(bytes[index + 2]) != nil
      else { return false }
    }
    return true
  }

  /// Whether the decoded bytes equal this text.
  func reads(_ text: String) -> Bool { ByteOrder(self, text.utf8.makeIterator()) == .same }
}

extension FramedHash {
  /// Writes the decoded bytes after their length.
  @inline(__always)
  mutating func frame(_ bytes: UnsafeRawBufferPointer, as reading: PercentText.Reading) {
    if PercentText.isPlain(bytes, as: reading) { frame(bytes) } else { frame(coded: bytes, as: reading) }
  }

  @inline(never)
  private mutating func frame(coded bytes: UnsafeRawBufferPointer, as reading: PercentText.Reading) {
    var count = 0
    var measured = PercentText(bytes, as: reading)
    while measured.next() != nil { count += 1 }
    number(count)
    var text = PercentText(bytes, as: reading)
    while let byte = text.next() { self.byte(byte) }
  }
}

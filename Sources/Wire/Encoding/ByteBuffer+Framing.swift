import NIOCore

extension ByteBuffer {
  /// Writes a text that is known when Semel is compiled. `writeStaticString` takes three times as long for the short
  /// texts of a head, of which a response has a dozen.
  @inline(__always)
  public mutating func writeLiteral(_ text: StaticString) {
    let length = text.utf8CodeUnitCount
    writeWithUnsafeMutableBytes(minimumWritableBytes: length) { space in
      space.copyMemory(from: UnsafeRawBufferPointer(start: text.utf8Start, count: length))
      return length
    }
  }

  /// Writes a field line in one step of the buffer's, which costs as much as the bytes of a short line.
  ///
  /// - Parameters:
  ///   - name: The name with its colon and space.
  ///   - longest: The maximum length of the value.
  ///   - writeValue: Writes the value, and returns its length.
  @inline(__always)
  public mutating func writeFieldLine(
    _ name: StaticString, longest: Int, _ writeValue: (UnsafeMutableRawPointer) -> Int
  ) {
    let nameLength = name.utf8CodeUnitCount
    writeWithUnsafeMutableBytes(minimumWritableBytes: nameLength + longest + 2) { space in
      guard let start = space.baseAddress else { return 0 }
      start.copyMemory(from: name.utf8Start, byteCount: nameLength)
      let length = writeValue(start + nameLength)
      invariant(length <= longest, "a field value longer than the room for it")
      (start + nameLength + length).storeBytes(of: ASCII.lineEnd, as: UInt16.self)
      return nameLength + length + 2
    }
  }

  /// Writes a field line with a value that is in bytes.
  public mutating func writeFieldLine(_ name: StaticString, _ value: ByteBuffer) {
    value.withUnsafeReadableBytes { value in
      writeFieldLine(name, longest: value.count) { place in
        place.write(value) - place
      }
    }
  }

  /// Writes a field line whose value is a non-negative number.
  public mutating func writeFieldLine(_ name: StaticString, _ value: Int) {
    writeFieldLine(name, longest: ASCII.maxDecimalLength) { ASCII.writeDecimal(value, to: $0) }
  }

  /// Writes a request line (RFC 9112, section 3) and CRLF.
  public mutating func writeRequestLine(method: String, target: String) {
    var (method, target) = (method, target)
    let longest = method.utf8.count + 1 + target.utf8.count
    writeWithUnsafeMutableBytes(minimumWritableBytes: longest + Self.version.utf8CodeUnitCount) { space in
      guard let start = space.baseAddress else { return 0 }
      var place = start
      method.withUTF8 { place = place.write(UnsafeRawBufferPointer($0)) }
      place.storeBytes(of: ASCII.space, as: UInt8.self)
      target.withUTF8 { place = (place + 1).write(UnsafeRawBufferPointer($0)) }
      place.copyMemory(from: Self.version.utf8Start, byteCount: Self.version.utf8CodeUnitCount)
      return place + Self.version.utf8CodeUnitCount - start
    }
  }

  private static var version: StaticString { " HTTP/1.1\r\n" }

  /// Writes `Content-Length: n` and CRLF.
  public mutating func writeContentLength(_ length: Int) { writeFieldLine("Content-Length: ", length) }

  /// Writes `Transfer-Encoding: chunked` and CRLF.
  public mutating func writeChunkedCoding() {
    writeLiteral("Transfer-Encoding: chunked\r\n")
  }

  /// Writes the size line of a chunk. The chunk's bytes and `writeChunkEnd` follow.
  ///
  /// - Parameter length: The number of bytes in the chunk. It must not be 0, since that would be the last chunk.
  public mutating func writeChunkHeader(_ length: Int) {
    invariant(length > 0, "a chunk of no bytes, which would end the body")
    let digits = (Int.bitWidth - length.leadingZeroBitCount + 3) / 4
    for index in (0..<digits).reversed() {
      let digit = ASCII.hexDigit(UInt8(truncatingIfNeeded: length >> (4 * index) & 0xF))
      writeInteger(digit)
    }
    writeLiteral("\r\n")
  }

  /// Writes the CRLF after a chunk's bytes.
  public mutating func writeChunkEnd() {
    writeLiteral("\r\n")
  }

  /// Writes the last chunk, the trailer lines and the empty line.
  ///
  /// - Parameter trailers: Field lines, each ended by CRLF.
  public mutating func writeLastChunk(trailers: ByteBuffer = ByteBuffer()) {
    guard trailers.readableBytes > 0 else {
      writeLiteral("0\r\n\r\n")
      return
    }
    writeLiteral("0\r\n")
    writeImmutableBuffer(trailers)
    writeLiteral("\r\n")
  }

  /// Writes a non-negative number in decimal digits, without the detour of a string.
  public mutating func writeDecimal(_ number: Int) {
    writeWithUnsafeMutableBytes(minimumWritableBytes: ASCII.maxDecimalLength) { space in
      space.baseAddress.map { ASCII.writeDecimal(number, to: $0) } ?? 0
    }
  }
}

extension UnsafeMutableRawPointer {
  /// Copies bytes to this place, and returns the place behind them.
  fileprivate func write(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutableRawPointer {
    if let start = bytes.baseAddress { copyMemory(from: start, byteCount: bytes.count) }
    return self + bytes.count
  }
}

extension ByteBuffer {
  /// Puts bytes that have arrived behind those that are not read yet, and gives up what was read.
  ///
  /// A write alone keeps all that was ever read: a peer each of whose writes ends within a message would make the buffer
  /// grow with everything that it sends.
  public mutating func follow(with bytes: ByteBuffer) {
    guard readableBytes > 0 else { return self = bytes }
    discardReadBytes()
    writeImmutableBuffer(bytes)
  }

  /// The same bytes, in memory of their own where they hold more than 4 KiB and more than twice what they need.
  ///
  /// A slice holds all of the buffer that it was cut from: one byte of a read holds 64 KiB, and counts as one.
  public var compact: ByteBuffer {
    guard storageCapacity > max(2 * readableBytes, 4 << 10) else { return self }
    guard readableBytes > 0 else { return ByteBuffer() }
    return readableBytesView.withUnsafeBytes { ByteBuffer(bytes: $0) }
  }
}

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

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

  /// Writes `Content-Length: n` and CRLF.
  public mutating func writeContentLength(_ length: Int) {
    writeLiteral("Content-Length: ")
    writeDecimal(length)
    writeLiteral("\r\n")
  }

  /// Writes `Transfer-Encoding: chunked` and CRLF.
  public mutating func writeChunkedCoding() {
    writeLiteral("Transfer-Encoding: chunked\r\n")
  }

  /// Writes the size line of a chunk. The chunk's bytes and `writeChunkEnd` follow.
  ///
  /// - Parameter length: The number of bytes in the chunk. It must not be 0, since that would be the last chunk.
  public mutating func writeChunkHeader(_ length: Int) {
    precondition(length > 0, "A chunk of no bytes would end the body.")
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
    // The largest number has nineteen digits.
    writeWithUnsafeMutableBytes(minimumWritableBytes: 19) { space in
      var digits = 1
      var rest = number / 10
      while rest > 0 {
        digits += 1
        rest /= 10
      }
      rest = number
      for index in (0..<digits).reversed() {
        space[index] = 0x30 + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      }
      return digits
    }
  }
}

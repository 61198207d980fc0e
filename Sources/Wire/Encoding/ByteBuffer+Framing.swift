import NIOCore

extension ByteBuffer {
  /// Writes `Content-Length: n` and CRLF.
  public mutating func writeContentLength(_ length: Int) {
    writeStaticString("Content-Length: ")
    writeDecimal(length)
    writeStaticString("\r\n")
  }

  /// Writes `Transfer-Encoding: chunked` and CRLF.
  public mutating func writeChunkedCoding() {
    writeStaticString("Transfer-Encoding: chunked\r\n")
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
    writeStaticString("\r\n")
  }

  /// Writes the CRLF after a chunk's bytes.
  public mutating func writeChunkEnd() {
    writeStaticString("\r\n")
  }

  /// Writes the last chunk, the trailer lines and the empty line.
  ///
  /// - Parameter trailers: Field lines, each ended by CRLF.
  public mutating func writeLastChunk(trailers: ByteBuffer = ByteBuffer()) {
    guard trailers.readableBytes > 0 else {
      writeStaticString("0\r\n\r\n")
      return
    }
    writeStaticString("0\r\n")
    writeImmutableBuffer(trailers)
    writeStaticString("\r\n")
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

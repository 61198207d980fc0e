import NIOCore

/// The data of chunks that are small and have arrived whole, as one piece.
///
/// A piece of one byte costs those who handle it about as much as one of a thousand, so that one read of 64 KiB could
/// bring the work of 11,000 pieces. Only the plainest chunks are joined; whatever is unusual is left to `ChunkLine`,
/// which alone refuses.
enum SmallChunks {
  /// The size from which a chunk is a piece of its own, in bytes: a slice then costs less than a copy.
  private static let maxSize = 1 << 10
  /// The bytes of input after which a piece ends.
  private static let maxInput = 16 << 10

  /// Takes the chunks at the start of the input, and returns their data; `nil` if there are not at least two.
  static func take(_ input: inout ByteBuffer) -> ByteBuffer? {
    var joined = ByteBuffer()
    let length = input.withUnsafeReadableBytes { bytes -> Int? in
      guard let first = Chunk(bytes, at: 0), Chunk(bytes, at: first.end) != nil else { return nil }
      var end = 0
      joined.writeWithUnsafeMutableBytes(minimumWritableBytes: min(bytes.count, maxInput + maxSize)) {
        target in
        var count = 0
        var next: Chunk? = first
        while let chunk = next {
          let data = UnsafeRawBufferPointer(rebasing: bytes[chunk.data])
          UnsafeMutableRawBufferPointer(rebasing: target[count...]).copyMemory(from: data)
          count += data.count
          end = chunk.end
          next = end < maxInput ? Chunk(bytes, at: end) : nil
        }
        return count
      }
      return end
    }
    guard let length else { return nil }
    input.moveReaderIndex(forwardBy: length)
    // Behind few chunks there may be much else, which the buffer had room for.
    return joined.compact
  }

  /// A chunk with data and without extensions.
  private struct Chunk {
    private static let maxDigits = 3

    let data: Range<Int>
    /// The offset behind the chunk's last CRLF.
    let end: Int

    /// Parses the chunk that begins at this offset; `nil` if it is no small one, or not all of it is here.
    init?(_ bytes: UnsafeRawBufferPointer, at start: Int) {
      var at = start
      var size = 0
      while at < bytes.count, let digit = ASCII.hexValue(bytes[at]) {
        guard at - start < Self.maxDigits else { return nil }
        size = size << 4 | Int(digit)
        at += 1
      }
      let first = at + 2
      guard 1..<maxSize ~= size, Self.isLineEnd(bytes, at), Self.isLineEnd(bytes, first + size) else {
        return nil
      }
      data = first..<first + size
      end = data.upperBound + 2
    }

    private static func isLineEnd(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> Bool {
      at + 1 < bytes.count && bytes[at] == ASCII.carriageReturn && bytes[at + 1] == ASCII.lineFeed
    }
  }
}

import NIOCore

/// The part of a response's body that its client has not taken yet, and the bytes that follow it. Pure.
///
/// It waits here and goes to the socket piece by piece, since NIO would hold without bound whatever it is given.
struct OutgoingBody {
  private var pieces: CircularBuffer<ByteBuffer> = []
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ bytes: ByteBuffer) {
    guard bytes.readableBytes > 0 else { return }
    count += bytes.readableBytes
    pieces.append(bytes)
  }

  /// The next bytes, at most `limit`; they share memory with what was appended.
  mutating func next(upTo limit: Int) -> ByteBuffer? {
    guard let first = pieces.first else { return nil }
    let length = min(limit, first.readableBytes)
    count -= length
    guard length < first.readableBytes else { return pieces.removeFirst() }
    return pieces[pieces.startIndex].readSlice(length: length)
  }

  /// Takes what is left of a body from another buffer with the same bytes.
  mutating func replace(_ body: ByteBuffer, by other: ByteBuffer) {
    guard let end = Self.end(of: body),
      let index = pieces.indices.first(where: { Self.end(of: pieces[$0]) == end })
    else { return }
    let left = pieces[index].readableBytes
    guard let same = other.getSlice(at: other.writerIndex - left, length: left) else { return }
    pieces[index] = same
  }

  /// The address behind the last byte, which identifies a buffer's bytes as long as the buffer is held.
  private static func end(of bytes: ByteBuffer) -> UnsafeRawPointer? {
    bytes.withUnsafeReadableBytes { bytes in bytes.baseAddress.map { $0 + bytes.count } }
  }

  mutating func removeAll() {
    pieces.removeAll()
    count = 0
  }
}

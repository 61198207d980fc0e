import NIOCore

/// What of a response's body its client has not taken yet, and what follows it. Pure.
///
/// It waits here and goes to the socket piece by piece, since what NIO was once given it holds without bound.
struct OutgoingBody {
  private var pieces: CircularBuffer<ByteBuffer> = []
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ bytes: ByteBuffer) {
    guard bytes.readableBytes > 0 else { return }
    count += bytes.readableBytes
    pieces.append(bytes)
  }

  /// The next bytes, at most so many; they share memory with what was appended.
  mutating func next(upTo limit: Int) -> ByteBuffer? {
    guard let first = pieces.first else { return nil }
    let length = min(limit, first.readableBytes)
    count -= length
    guard length < first.readableBytes else { return pieces.removeFirst() }
    return pieces[pieces.startIndex].readSlice(length: length)
  }

  /// Reads what is left of a body from another buffer with the same bytes.
  mutating func replace(_ body: ByteBuffer, by other: ByteBuffer) {
    // It is the largest piece, or what is left of it; what frames it is small.
    guard let index = pieces.indices.max(by: { pieces[$0].readableBytes < pieces[$1].readableBytes }),
      pieces[index].writerIndex == body.writerIndex, pieces[index].storageCapacity == body.storageCapacity
    else { return }
    let left = pieces[index].readableBytes
    guard let same = other.getSlice(at: other.writerIndex - left, length: left) else { return }
    pieces[index] = same
  }

  mutating func removeAll() {
    pieces.removeAll()
    count = 0
  }
}

import NIOCore
import Wire

/// The part of a response's body that its client has not taken yet, and the bytes that follow it. Pure.
///
/// It waits here and goes to the socket piece by piece, since NIO would hold any number of bytes that it is given.
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
    guard let first = pieces.first else {
      invariant(count == 0, "bytes of a response wait in no piece")
      return nil
    }
    let length = min(limit, first.readableBytes)
    count -= length
    invariant(count >= 0, "more of a response leaves than waits")
    guard length < first.readableBytes else { return pieces.removeFirst() }
    return pieces[pieces.startIndex].readSlice(length: length)
  }

  mutating func removeAll() {
    pieces.removeAll()
    count = 0
  }
}

import NIOCore
import Wire

/// The response under way on an HTTP/1.1 connection: its framing, and the bytes that the client has not taken yet.
/// Pure.
struct OutgoingResponse {
  private(set) var framing = ResponseEncoder.Framing.none
  private var bytes = OutgoingBody()

  var isEmpty: Bool { bytes.isEmpty }
  var count: Int { bytes.count }

  mutating func begin(_ framing: ResponseEncoder.Framing) {
    invariant(bytes.isEmpty, "a response begins behind one that has not left")
    self.framing = framing
  }

  mutating func append(head: ByteBuffer) { bytes.append(head) }

  /// Appends a piece of the body in its framing, without copying it.
  mutating func append(_ piece: ByteBuffer) {
    guard piece.readableBytes > 0, framing != .none else { return }
    guard framing == .chunked else { return bytes.append(piece) }
    var start = ByteBufferAllocator().buffer(capacity: 16)
    start.writeChunkHeader(piece.readableBytes)
    var end = ByteBufferAllocator().buffer(capacity: 2)
    end.writeChunkEnd()
    bytes.append(start)
    bytes.append(piece)
    bytes.append(end)
  }

  mutating func appendEnd(trailers: ByteBuffer) {
    guard framing == .chunked else { return }
    var end = ByteBufferAllocator().buffer(capacity: trailers.readableBytes + 8)
    end.writeLastChunk(trailers: trailers)
    bytes.append(end)
  }

  /// Takes out the next bytes, at most `limit`.
  mutating func next(upTo limit: Int) -> ByteBuffer? { bytes.next(upTo: limit) }

  mutating func removeAll() { bytes.removeAll() }
}

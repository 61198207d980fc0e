import NIOCore
import Telemetry
import Wire

/// Streams a backend's answer to a client: with its own length where it has one, chunked, or to the connection's end.
struct AnswerRelay {
  private let head: MessageHead
  private let label: AnswerEncoder.Label?
  private let delivery: Delivery
  let framing: AnswerEncoder.Framing

  init(head: MessageHead, label: AnswerEncoder.Label?, delivery: Delivery) {
    self.head = head
    self.label = label
    self.delivery = delivery
    if AnswerEncoder.hasNoBody(status: head.status, method: delivery.request.head.method) {
      framing = .none
    } else if let length = head.string(.contentLength).flatMap({ Int($0) }) {
      framing = .length(length)
    } else {
      framing = delivery.request.head.minorVersion == 1 ? .chunked : .close
    }
  }

  /// Writes the head, and what of the body is there already, at once.
  func begin(with piece: ByteBuffer = ByteBuffer()) {
    let isClosing = delivery.decideClosing()
    delivery.record.status = head.status
    var out = AnswerEncoder.head(
      head, framing: framing, label: label, to: delivery.request, isClosing: isClosing,
      bodyCapacity: piece.readableBytes)
    append(piece, to: &out)
    delivery.begin(out)
  }

  /// Writes a piece and returns once the client takes more, or is gone.
  func write(_ piece: ByteBuffer) async {
    guard framing == .chunked else { return await delivery.write(piece) }
    var out = ByteBufferAllocator().buffer(capacity: piece.readableBytes + 24)
    append(piece, to: &out)
    await delivery.write(out)
  }

  /// Writes the last piece and ends the answer.
  func end(with piece: ByteBuffer = ByteBuffer(), trailers: ByteBuffer = ByteBuffer()) {
    var out = ByteBufferAllocator().buffer(capacity: piece.readableBytes + trailers.readableBytes + 32)
    append(piece, to: &out)
    if framing == .chunked { out.writeLastChunk(trailers: trailers) }
    delivery.end(out, closing: framing == .close)
  }

  private func append(_ piece: ByteBuffer, to out: inout ByteBuffer) {
    switch framing {
    case .none: break
    case .chunked: AnswerEncoder.writeChunk(piece, to: &out)
    case .length, .close: out.writeImmutableBuffer(piece)
    }
  }
}

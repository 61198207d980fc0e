import NIOCore
import Telemetry
import Wire

/// Streams a backend's answer to a client.
struct AnswerRelay {
  private let head: AnswerHead
  private let delivery: Delivery

  init(head: MessageHead, label: AnswerLabel?, delivery: Delivery) {
    self.head = AnswerHead(
      source: .backend(head, label),
      content: .init(
        length: head.string(.contentLength).flatMap { Int($0) }, status: head.status,
        method: delivery.request.head.method))
    self.delivery = delivery
  }

  /// Whether there is no body: a client that has the head has all.
  var endsWithHead: Bool { head.content == .none || head.content == .length(0) }

  /// Whether the client may take the answer for whole once it has so many bytes of the body. Where its end has a mark
  /// of its own it takes nothing for whole without that.
  func mayEnd(after count: Int) -> Bool {
    switch head.content {
    case .none: true
    case .length(let length): count >= length
    case .unknown: delivery.request.head.minorVersion == 0
    }
  }

  /// Writes the head, and what of the body is there already, at once.
  func begin(with piece: ByteBuffer = ByteBuffer()) {
    delivery.record.status = head.status
    delivery.begin(head, with: piece)
  }

  /// Writes a piece and returns once the client takes more, or is gone.
  func write(_ piece: ByteBuffer) async { await delivery.write(piece) }

  /// Writes the last piece and ends the answer.
  func end(with piece: ByteBuffer = ByteBuffer(), trailers: ByteBuffer = ByteBuffer()) {
    delivery.end(with: piece, trailers: trailers)
  }
}

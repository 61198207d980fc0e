import NIOCore
import Telemetry
import Wire

/// The relay that streams a backend's response to a client.
struct ResponseRelay {
  private let head: ClientResponseHead
  private let delivery: Delivery

  init(head: MessageHead, label: ResponseLabel?, delivery: Delivery) {
    self.head = ClientResponseHead(
      source: .backend(head, label),
      content: .init(
        length: head.string(.contentLength).flatMap { Int($0) }, status: head.status,
        method: delivery.request.head.method))
    self.delivery = delivery
  }

  /// Whether the client gets no body, so that the head is the whole response.
  var endsWithHead: Bool { head.content == .none || head.content == .length(0) }

  /// Whether the client may consider the response complete once it has `count` bytes of the body. If a mark ends the
  /// body, the client considers nothing complete without it.
  func mayEnd(after count: Int) -> Bool {
    switch head.content {
    case .none: true
    case .length(let length): count >= length
    case .unknown: delivery.request.head.minorVersion == 0
    }
  }

  /// Writes the head at once, with the part of the body that has arrived.
  func begin(with piece: ByteBuffer = ByteBuffer()) {
    delivery.logEntry.status = head.status
    delivery.begin(head, with: piece)
  }

  /// Writes a piece and returns once the client takes more, or is gone.
  func write(_ piece: ByteBuffer) async { await delivery.write(piece) }

  /// Writes the last piece and ends the response.
  func end(with piece: ByteBuffer = ByteBuffer(), trailers: ByteBuffer = ByteBuffer()) {
    delivery.end(with: piece, trailers: trailers)
  }
}

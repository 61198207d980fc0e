import Idempotency
import NIOCore
import Telemetry
import Wire

/// A backend's complete answer: whole, or relayed to the client but for its last piece.
struct CapturedAnswer {
  let head: MessageHead
  private let isDelimitedByClose: Bool
  private let trailers: ByteBuffer
  /// The whole body, or the last piece of one that was relayed.
  private let body: ByteBuffer
  private let relay: AnswerRelay?

  init(head: UpstreamHead, body: ByteBuffer, trailers: ByteBuffer) {
    self.head = head.head
    isDelimitedByClose = head.isDelimitedByClose
    self.body = body
    self.trailers = trailers
    relay = nil
  }

  init(head: UpstreamHead, relay: AnswerRelay, lastPiece: ByteBuffer, trailers: ByteBuffer) {
    self.head = head.head
    isDelimitedByClose = head.isDelimitedByClose
    body = lastPiece
    self.trailers = trailers
    self.relay = relay
  }

  /// What of it is kept.
  func outcome(by route: Route, method: MessageHead.Method) -> Outcome {
    guard relay == nil, !isDelimitedByClose else {
      return .notKept(status: head.status, location: head.string(.location))
    }
    var dropped = AnswerEncoder.droppedFromRecords
    if route.policy.setCookie == .drop { dropped.formUnion(FieldNameSet(.setCookie)) }
    if method == .head || head.status == 304 { dropped.subtract(.length) }
    var fields = ByteBufferAllocator().buffer(capacity: head.bytes.readableBytes)
    head.copyFields(into: &fields, omitting: dropped)
    return .kept(RecordedResponse(status: head.status, fields: fields, body: body, trailers: trailers))
  }

  /// Gives it to the client, or what is left of it.
  func answer(_ delivery: Delivery, label: AnswerEncoder.Label?) {
    if let relay { return relay.end(with: body, trailers: trailers) }
    guard delivery.answerState == .none else { return }
    delivery.record.status = head.status
    let isClosing = delivery.decideClosing()
    let framing: AnswerEncoder.Framing
    if AnswerEncoder.hasNoBody(status: head.status, method: delivery.request.head.method) {
      framing = .none
    } else if trailers.readableBytes > 0, delivery.request.head.minorVersion == 1 {
      framing = .chunked
    } else {
      framing = .length(body.readableBytes)
    }
    var out = AnswerEncoder.head(
      head, framing: framing, label: label, to: delivery.request, isClosing: isClosing,
      bodyCapacity: body.readableBytes)
    AnswerEncoder.writeBody(body, trailers: trailers, framing: framing, to: &out)
    delivery.answer(out)
  }
}

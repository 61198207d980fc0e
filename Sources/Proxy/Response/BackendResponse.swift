import Idempotency
import NIOCore
import Telemetry
import Wire

/// A backend's complete response: whole, or relayed to the client except for its last bytes.
///
/// A class, so that it is not copied into the frame of every step that has it.
final class BackendResponse {
  let head: MessageHead
  private let isDelimitedByClose: Bool
  private let trailers: ByteBuffer
  /// The whole body, or the last piece of one that was relayed.
  private let body: ByteBuffer
  private let relay: ResponseRelay?
  /// The whole body of a relayed response, if it is small enough to keep.
  private let copy: ByteBuffer?

  init(head: UpstreamHead, body: ByteBuffer, trailers: ByteBuffer) {
    self.head = head.head
    isDelimitedByClose = head.isDelimitedByClose
    self.body = body
    self.trailers = trailers
    relay = nil
    copy = body
  }

  init(
    head: UpstreamHead, relay: ResponseRelay, lastPiece: ByteBuffer, copy: ByteBuffer?, trailers: ByteBuffer
  ) {
    self.head = head.head
    isDelimitedByClose = head.isDelimitedByClose
    body = lastPiece
    self.trailers = trailers
    self.relay = relay
    self.copy = copy
  }

  /// Whether the client has a part of it.
  var isRelayed: Bool { relay != nil }

  /// The response that Semel gives in place of one that means *deleted already*. Pages may read it where they may read
  /// that one.
  static func deleted(inPlaceOf response: BackendResponse) -> BackendResponse {
    var head = MessageHead(start: .status(204, reason: 0..<0))
    OriginAllowance(response.head)?.add(to: &head)
    return BackendResponse(
      head: UpstreamHead(head: head, isDelimitedByClose: false), body: ByteBuffer(), trailers: ByteBuffer())
  }

  /// The outcome to record.
  func outcome(by route: Route, method: MessageHead.Method) -> Outcome {
    guard let copy, !isDelimitedByClose else {
      return .statusOnly(status: head.status, location: head.string(.location))
    }
    var dropped = ClientResponseHead.droppedFromRecords
    if route.policy.setCookie == .drop { dropped.formUnion(FieldNameSet(.setCookie)) }
    if method == .head || head.status == 304 { dropped.subtract(.length) }
    var fields = ByteBufferAllocator().buffer(capacity: head.bytes.readableBytes)
    head.copyFields(into: &fields, omitting: dropped)
    return .whole(
      RecordedResponse(
        status: head.status, fields: fields, body: copy, trailers: trailers.fieldLines(without: .momentary)))
  }

  /// Sends it to the client, or the part of it that the client has not got.
  func send(to delivery: Delivery, label: ResponseLabel?) {
    if let relay { return relay.end(with: body, trailers: trailers) }
    guard delivery.responseState == .none else { return }
    delivery.logEntry.status = head.status
    delivery.respond(
      with: ClientResponse(
        head, label: label, body: body, trailers: trailers, to: delivery.request.head.method))
  }
}

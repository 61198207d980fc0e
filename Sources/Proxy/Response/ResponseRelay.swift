import Idempotency
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

/// A backend's complete response: whole, or relayed to the client except for its last bytes.
///
/// A class, so that it is not copied into the frame of every step that has it.
final class BackendResponse {
  let head: MessageHead
  /// Whether only the connection's end delimits the body, so that a part of it may be missing.
  let isDelimitedByClose: Bool
  private let trailers: ByteBuffer
  /// The whole body, or the last piece of one that was relayed.
  private let body: ByteBuffer
  private let relay: ResponseRelay?
  /// The whole body of a relayed response, if it is small enough to keep.
  private let copy: ByteBuffer?
  /// Whether there was no memory for that.
  private let lacksMemory: Bool

  init(head: UpstreamHead, body: ByteBuffer, trailers: ByteBuffer) {
    self.head = head.head
    isDelimitedByClose = head.isDelimitedByClose
    self.body = body
    self.trailers = trailers
    relay = nil
    copy = body
    lacksMemory = false
  }

  init(
    head: UpstreamHead, relay: ResponseRelay, lastPiece: ByteBuffer, copy: ByteBuffer?, lacksMemory: Bool,
    trailers: ByteBuffer
  ) {
    self.head = head.head
    isDelimitedByClose = head.isDelimitedByClose
    body = lastPiece
    self.trailers = trailers
    self.relay = relay
    self.copy = copy
    self.lacksMemory = lacksMemory
  }

  /// The whole body; `nil` if the response was relayed.
  var wholeBody: ByteBuffer? { relay == nil ? body : nil }

  /// Whether the client has a part of it.
  var isRelayed: Bool { relay != nil }

  /// The reason for which its outcome is recorded without its body; `nil` if the body is recorded, or the route's owner
  /// wants none.
  func unkeptReason(by route: Route) -> UnkeptReason? {
    if route.policy.record == .status { return nil }
    if isDelimitedByClose { return .noLength }
    return copy == nil ? (lacksMemory ? .noMemory : .tooLarge) : nil
  }

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
    guard let copy, !isDelimitedByClose, route.policy.record == .response else {
      return .statusOnly(status: head.status, location: route.recordedLocation(head))
    }
    var dropped = ClientResponseHead.droppedFromRecords
    if route.policy.setCookie == .drop { dropped.formUnion(FieldNameSet(.setCookie)) }
    if method == .head || head.status == 304 { dropped.subtract(.length) }
    var fields = ByteBufferAllocator().buffer(capacity: head.bytes.readableBytes)
    if head.names.contains(.age) { AgeStamp.put(age, into: &fields) }
    head.copyFields(into: &fields, omitting: dropped, route.unrecorded)
    return .whole(
      RecordedResponse(
        status: head.status, fields: fields, body: copy,
        trailers: trailers.fieldLines(without: .momentary, route.unrecorded)))
  }

  /// The age that a cache on the way states, in seconds; 0 if it states none, or several.
  private var age: Int {
    guard head.count(.age) == 1, let field = head.first(.age) else { return 0 }
    return head.withBytes(field.valueRange) { ASCII.decimal($0) } ?? 0
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

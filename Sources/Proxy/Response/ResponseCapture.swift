import Idempotency
import NIOCore
import Platform
import Wire

/// The capture of a claimed request's response from the backend: whole, or relayed except for its last bytes if it is
/// too large to keep or the route streams.
///
/// After a time-out it may run again, and continues where it stopped: a response that was relayed is never taken for a
/// whole one.
final class ResponseCapture<Exchange: UpstreamExchange> {
  /// The bytes for which memory was reserved before the claim.
  private static var firstStep: Int { MemoryLimits.reservation }

  private let exchange: Exchange
  private let call: KeyedCall
  private let claim: Claim
  private let delivery: Delivery
  private var route: Route { call.route }
  /// Set once the client is given the response as it comes.
  private var relay: ResponseRelay?
  /// The bytes relayed so far, if the response may still be kept.
  private var copy: ByteBuffer?
  /// Whether the response is not kept for lack of memory.
  private var lacksMemory = false

  init(of exchange: Exchange, call: KeyedCall, claim: Claim, delivery: Delivery) {
    self.exchange = exchange
    self.call = call
    self.claim = claim
    self.delivery = delivery
  }

  /// - Parameter span: The time limit of the whole response, which begins with the request's last byte, or with this
  ///   call if that was sent before. Connecting and uploading do not count.
  func run(within span: Milliseconds) async throws(UpstreamFailure) -> BackendResponse {
    let limit = Limit(span: span, since: .now())
    if relay == nil, !route.policy.stream, let body = try await collect(within: limit) {
      return BackendResponse(
        head: try await exchange.head(within: nil), body: body, trailers: exchange.trailers)
    }
    return try await pass(within: limit)
  }

  /// The whole body, in the time that `run(within:)` has; `nil` if it is larger than may be kept, or there is no memory
  /// for it.
  func collect(within span: Milliseconds) async throws(UpstreamFailure) -> ByteBuffer? {
    try await collect(within: Limit(span: span, since: .now()))
  }

  private func collect(within limit: Limit) async throws(UpstreamFailure) -> ByteBuffer? {
    let step = min(route.policy.maxResponseBody, Self.firstStep)
    if case .whole(let body) = try await exchange.collect(upTo: step, within: limit.span) { return body }
    return try await collectMore(within: limit)
  }

  /// The time limit of one run.
  private struct Limit {
    let span: Milliseconds
    let since: NIODeadline
  }

  /// The time left of a limit: all of it until the request is sent, since the port counts from there by itself.
  private func left(of limit: Limit) -> Milliseconds {
    guard let sentAt = exchange.sentAt else { return limit.span }
    return limit.span - Milliseconds(NIODeadline.now() - max(sentAt, limit.since))
  }

  /// Collects a response that is larger than the first step, as far as it may be kept and there is memory for it. A
  /// response without memory counts as too large to keep.
  @inline(never)
  private func collectMore(within time: Limit) async throws(UpstreamFailure) -> ByteBuffer? {
    let limit = route.policy.maxResponseBody
    var step = Self.firstStep
    // A known length is taken at once: captures that each hold a part and wait for the rest could wait for each other.
    let length = try await exchange.head(within: nil).head.string(.contentLength).flatMap { Int($0) }
    if let length, length > limit { step = limit }
    while step < limit {
      step = min(limit, max(step * 2, length ?? 0))
      guard await delivery.mayCapture(step, within: left(of: time)) else {
        lacksMemory = true
        break
      }
      let collected = try await exchange.collect(upTo: step, within: left(of: time))
      if case .whole(let body) = collected {
        delivery.memory.shrinkCapture(to: body.readableBytes)
        return body
      }
    }
    delivery.memory.shrinkCapture(to: 0)
    return nil
  }

  /// Takes a response that is not kept whole, or not before the client has it.
  @inline(never)
  private func pass(within limit: Limit) async throws(UpstreamFailure) -> BackendResponse {
    let head = try await exchange.head(within: left(of: limit))
    if relay == nil, meansDeleted(head.head) { return try await dropBody(of: head, within: limit) }
    let relay = relay ?? makeRelay(head)
    guard !relay.endsWithHead else { return try await takeWhole(head, within: limit) }
    begin(relay)
    return try await pass(on: relay, of: head, within: left(of: limit))
  }

  /// Takes a response that has no body for the client: its head may not go out before it is stored.
  private func takeWhole(
    _ head: UpstreamHead, within limit: Limit
  ) async throws(UpstreamFailure) -> BackendResponse {
    var body = ByteBuffer()
    while let piece = try await exchange.read(within: left(of: limit)) {
      body.writeImmutableBuffer(piece)
    }
    return BackendResponse(head: exchange.readyHead ?? head, body: body, trailers: exchange.trailers)
  }

  /// Whether the client is to get 204 in place of the response.
  private func meansDeleted(_ head: MessageHead) -> Bool {
    call.isDelete
      && call.lifecycle.meansDeleted(
        status: head.status, steering: Steering(of: head, by: route.policy), to: claim)
  }

  /// Takes a response of which only the head matters.
  private func dropBody(
    of head: UpstreamHead, within limit: Limit
  ) async throws(UpstreamFailure) -> BackendResponse {
    while try await exchange.read(within: left(of: limit)) != nil {}
    return BackendResponse(head: head, body: ByteBuffer(), trailers: ByteBuffer())
  }

  @inline(never)
  private func makeRelay(_ head: UpstreamHead) -> ResponseRelay {
    let outcome = call.lifecycle.outcomeClass(
      of: head.head.status, steering: Steering(of: head.head, by: route.policy), to: claim)
    return ResponseRelay(
      head: head.head, label: ResponseLabel(outcome, isKept: mayKeep(head)), delivery: delivery)
  }

  /// Whether a response that is relayed may be recorded with its body: one that is streamed, as far as its head tells.
  private func mayKeep(_ head: UpstreamHead) -> Bool {
    let length = head.head.string(.contentLength).flatMap { Int($0) } ?? 0
    return route.policy.stream && route.policy.record == .response && !head.isDelimitedByClose
      && length <= route.policy.maxResponseBody
  }

  /// Begins to relay a response that is too large to keep or is streamed, unless the client was refused at a time-out.
  @inline(never)
  private func begin(_ relay: ResponseRelay) {
    guard self.relay == nil else { return }
    self.relay = relay
    if route.policy.stream, route.policy.record == .response { copy = ByteBuffer() }
    if delivery.responseState == .none { relay.begin() }
  }

  /// Passes the response on except for its last bytes, which wait for the store: the piece that completes its length
  /// or, if a mark ends the body, that mark. Without length and mark the client is always one piece behind.
  ///
  /// A slow client holds the backend back, and that time does not count against the backend.
  private func pass(
    on relay: ResponseRelay, of head: UpstreamHead, within span: Milliseconds
  ) async throws(UpstreamFailure) -> BackendResponse {
    var left = TimeAmount.milliseconds(span.count)
    var held: ByteBuffer?
    var passed = 0
    while true {
      let readAt = NIODeadline.now()
      guard let piece = try await exchange.read(within: Milliseconds(left)) else { break }
      let now = NIODeadline.now()
      left = left - (now - max(exchange.sentAt ?? now, readAt))
      keep(piece)
      if let before = held { await relay.write(before) }
      passed += piece.readableBytes
      held = relay.mayEnd(after: passed) ? piece : nil
      if held == nil { await relay.write(piece) }
    }
    invariant(
      passed <= copy?.readableBytes ?? passed, "a part of a response would be recorded as the whole")
    // Only the end shows whether one by the connection's end was whole.
    return BackendResponse(
      head: exchange.readyHead ?? head, relay: relay, lastPiece: held ?? ByteBuffer(), copy: copy,
      lacksMemory: lacksMemory,
      trailers: exchange.trailers)
  }

  /// Adds a piece to the copy, or drops the copy if it becomes too large. The exchange continues in either case.
  private func keep(_ piece: ByteBuffer) {
    guard let size = copy?.readableBytes else { return }
    let whole = size + piece.readableBytes
    let isSmall = whole <= route.policy.maxResponseBody
    if isSmall, delivery.memory.growCapture(to: whole) {
      copy?.writeImmutableBuffer(piece)
    } else {
      copy = nil
      lacksMemory = isSmall
      delivery.memory.shrinkCapture(to: 0)
    }
  }
}

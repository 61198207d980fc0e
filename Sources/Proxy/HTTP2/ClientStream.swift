import Idempotency
import Loop
import NIOCore
import NIOHPACK
import NIOHTTP2
import Telemetry
import Wire

/// One stream of HTTP/2: one delivery, its body as it is asked for, and its answer as the client's window allows.
final class ClientStream: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  /// What is written as one, so that a client that reads slowly can be told from one that does not read.
  private static var pieceBytes: Int { 64 << 10 }

  private let session: ClientSession
  private let downstream: Downstream
  private var context: ChannelHandlerContext?
  private(set) var delivery: Delivery?
  private var bodyLength: BodyLength?
  /// Whether the client has ended its side.
  private var isEnded = false
  /// Whether the answer is whole, or will never be.
  private var isAnswered = false
  private var isReset = false
  private var isReading = true
  /// Whether it counts as a delivery that is run: until it is answered, or nothing runs for it any more.
  private var takesPlace = false
  /// Writes that have not left yet.
  private var unwritten = 0
  private var hasProgressed = false
  private var timer: LoopTimers.Token?

  init(of session: ClientSession) {
    self.session = session
    downstream = session.downstream
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    if let id = try? context.channel.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID) {
      session.opened(self, id)
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let block):
      isEnded = block.endStream
      if bodyLength == nil { begin(block.headers) } else { end(block.headers) }
    case .data(let data):
      isEnded = data.endStream
      if case .byteBuffer(let piece) = data.data { receive(piece) }
    default:
      break
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    if let delivery, !delivery.isStarted {
      delivery.isStarted = true
      downstream.start(delivery)
    }
    if let delivery, !delivery.bodyHasEnded, !delivery.wantsBody { setReading(false) }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { delivery?.becameWritable() }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func channelInactive(context: ChannelHandlerContext) {
    stopTimer()
    self.context = nil
    // Reset by the client, or gone with its connection: the exchange goes on without it.
    delivery?.disconnected()
    delivery = nil
    session.ended(self)
  }
}

// What the client sends.
extension ClientStream {
  private func begin(_ fields: HPACKHeaders) {
    do throws(WireError) {
      let limits = downstream.limits.head
      let request = try RequestHead(http2: fields.pairs, isEnd: isEnded, limits: limits)
      bodyLength = BodyLength(request.framing)
      guard session.mayRun() else { return reset(.refusedStream) }
      let delivery = Delivery(request: request, channel: self, peer: session.peer, on: downstream)
      takesPlace = true
      // Also when the stream is long gone: what was reset runs on, and counts.
      delivery.whenRunEnds = { [self] in givePlaceBack() }
      self.delivery = delivery
    } catch {
      bodyLength = BodyLength(.chunked)
      downstream.environment.counters.add(.framingErrors)
      let problem = Problem.unreadable(error)
      downstream.metrics.refusedUnread(RefusalReason(problem.code))
      _ = answer(Answer(problem))
    }
  }

  private func receive(_ piece: ByteBuffer) {
    guard let delivery else { return }
    do throws(WireError) {
      try bodyLength?.add(piece.readableBytes)
      if isEnded { try bodyLength?.end() }
      if piece.readableBytes > 0 { delivery.received(piece) }
      if isEnded { delivery.bodyEnded() }
    } catch {
      broken(error)
    }
  }

  /// The fields after the body.
  private func end(_ fields: HPACKHeaders) {
    guard let delivery else { return }
    do throws(WireError) {
      guard isEnded else { throw .forbiddenTrailer }
      try bodyLength?.end()
      delivery.bodyEnded(trailers: try HTTP2Trailers.lines(fields.pairs))
    } catch {
      broken(error)
    }
  }

  /// The connection brings nothing more: what of the body has come is read, and one without its end is broken off.
  func inputClosed() {
    setReading(true)
    guard !isEnded, let delivery else { return }
    delivery.bodyFailed(.badRequest(.malformed))
  }

  private func broken(_ error: WireError) {
    downstream.environment.counters.add(.framingErrors)
    delivery?.bodyFailed(.unreadable(error))
  }

  private func setReading(_ wanted: Bool) {
    guard wanted != isReading, let context else { return }
    isReading = wanted
    try? context.channel.syncOptions?.setOption(.autoRead, value: wanted)
    if wanted { context.read() }
  }
}

// What the delivery writes.
extension ClientStream: DeliveryChannel {
  var connection: ObjectIdentifier { ObjectIdentifier(session) }

  var isWritable: Bool { context?.channel.isWritable ?? false }

  func answer(_ answer: Answer) -> Int {
    let head = HPACKHeaders(answer.head)
    let trailers = HPACKHeaders(lines: answer.trailers)
    let hasBody = answer.head.content != .none && answer.body.readableBytes > 0
    let hasTrailers = answer.head.content != .none && !trailers.isEmpty
    write(head, isEnd: !hasBody && !hasTrailers)
    if hasBody { write(answer.body, isEnd: !hasTrailers) }
    if hasTrailers { write(trailers, isEnd: true) }
    ended()
    return head.byteCount + (hasBody ? answer.body.readableBytes : 0) + trailers.byteCount
  }

  func begin(_ head: AnswerHead, with piece: ByteBuffer) -> Int {
    let fields = HPACKHeaders(head)
    write(fields, isEnd: false)
    if piece.readableBytes > 0 { write(piece, isEnd: false) }
    flush()
    return fields.byteCount + piece.readableBytes
  }

  func write(_ piece: ByteBuffer) -> Int {
    guard piece.readableBytes > 0 else { return 0 }
    write(piece, isEnd: false)
    flush()
    return piece.readableBytes
  }

  func end(with piece: ByteBuffer, trailers: ByteBuffer) -> Int {
    let trailers = HPACKHeaders(lines: trailers)
    // An end of its own is an empty frame, which costs nine bytes.
    if piece.readableBytes > 0 || trailers.isEmpty { write(piece, isEnd: trailers.isEmpty) }
    if !trailers.isEmpty { write(trailers, isEnd: true) }
    ended()
    return piece.readableBytes + trailers.byteCount
  }

  func sendContinue() {
    write([":status": "100"], isEnd: false)
    flush()
  }

  func interim(_ head: AnswerHead) {
    write(HPACKHeaders(head), isEnd: false)
    flush()
  }

  func switchProtocols(_ head: MessageHead) -> Int {
    preconditionFailure("ClientStream: protocols switched, and HTTP/2 has no Upgrade to ask for it")
  }

  func resumeBody() { setReading(true) }

  func abort() {
    delivery = nil
    reset(.internalError)
  }
}

extension ClientStream {
  /// The codec splits no head, and would end the connection for it, with everybody's streams. A client that asks again
  /// by HTTP/1.1, as it is told, gets what was recorded (RFC 9113, section 7).
  private func write(_ fields: HPACKHeaders, isEnd: Bool) {
    guard fields.fitsFrame else { return reset(.http11Required) }
    write(.headers(.init(headers: fields, endStream: isEnd)))
  }

  private func write(_ body: ByteBuffer, isEnd: Bool) {
    var rest = body
    while rest.readableBytes > Self.pieceBytes, let piece = rest.readSlice(length: Self.pieceBytes) {
      write(.data(.init(data: .byteBuffer(piece), endStream: false)))
    }
    write(.data(.init(data: .byteBuffer(rest), endStream: isEnd)))
  }

  private func write(_ payload: HTTP2Frame.FramePayload) {
    guard let context, !isReset else { return }
    unwritten += 1
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.whenComplete { [self] _ in hasLeft() }
    context.write(wrapOutboundOut(payload), promise: promise)
  }

  private func flush() {
    context?.flush()
    if unwritten > 0, timer == nil { startTimer() }
  }

  /// All of the answer has been written.
  private func ended() {
    delivery = nil
    isAnswered = true
    givePlaceBack()
    flush()
    finish()
  }

  private func givePlaceBack() {
    if takesPlace { session.runEnded() }
    takesPlace = false
  }

  private func hasLeft() {
    unwritten -= 1
    hasProgressed = true
    guard unwritten == 0 else { return }
    stopTimer()
    finish()
  }

  /// A client that still sends a body, which nobody reads any more, is told to stop (RFC 9113, section 8.1). Not
  /// before the answer has left, since a reset drops what has not.
  private func finish() {
    guard isAnswered, unwritten == 0, !isEnded else { return }
    reset(.noError)
  }

  private func reset(_ code: HTTP2ErrorCode) {
    isAnswered = true
    isEnded = true
    isReset = true
    context?.writeAndFlush(wrapOutboundOut(.rstStream(code)), promise: nil)
  }

  private func startTimer() {
    hasProgressed = false
    timer = downstream.context.timers.start(milliseconds: downstream.limits.writeTimeout.count) {
      [weak self] in
      self?.timerFired()
    }
  }

  private func stopTimer() {
    if let timer { downstream.context.timers.stop(timer) }
    timer = nil
  }

  /// A client that lets nothing through for so long will not: its stream is given up, or all of its connection where
  /// nothing leaves at all.
  private func timerFired() {
    timer = nil
    guard let context, unwritten > 0 else { return }
    if hasProgressed { return startTimer() }
    if context.channel.parent?.isWritable == false { return session.cut() }
    reset(.cancel)
  }
}

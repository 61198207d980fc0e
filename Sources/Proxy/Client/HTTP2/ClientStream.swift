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
  private static var pieceBytes: Int { 32 << 10 }
  /// What of a body may stand in the codec: it serves its streams in turn, as long as each has something there.
  private static var codecBytes: Int { 64 << 10 }
  /// A whole answer up to this, in bytes, never meets the limits of memory: a refusal must reach its client.
  private static var smallBytes: Int { 4 << 10 }
  /// Recorded bodies above this are shared with the others who read them.
  private static var sharedAbove: Int { 16 << 10 }

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
  /// Whether the request broke the protocol: its stream ends with an error (RFC 9113, section 8.1.1).
  private var isMalformed = false
  private var isReading = true
  /// Whether it counts as a delivery that is run: until it is answered, or nothing runs for it any more.
  private var takesPlace = false
  /// What of the answer was not given to the codec yet, which would hold it without bound.
  private var outgoing = OutgoingBody()
  /// The fields after the body.
  private var trailers = HPACKHeaders([])
  /// Where the body is a recorded one that others read as well.
  private var sharedBody: SharedBody?
  /// What this stream's answer holds of the memory for bodies, beside what is shared.
  private var heldBytes = 0
  /// Writes that have not left yet, and how much of the body they are.
  private var unwritten = 0
  private var unwrittenBytes = 0
  /// When the client last took some of a body, or the wait for that began.
  private var progressedAt = NIODeadline.distantPast
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
    if isWritable { delivery?.becameWritable() }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func channelInactive(context: ChannelHandlerContext) {
    stopTimer()
    self.context = nil
    dropOutgoing()
    // Reset by the client, or gone with its connection: the exchange goes on without it.
    delivery?.disconnected()
    if let delivery, !delivery.isStarted { delivery.runEnded() }
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
      let delivery = Delivery(
        request: request, channel: self, memory: session.memory, peer: session.peer, on: downstream)
      takesPlace = true
      // Also when the stream is long gone: what was reset runs on, and counts.
      delivery.whenRunEnds = { [self] in givePlaceBack() }
      self.delivery = delivery
    } catch {
      bodyLength = BodyLength(.chunked)
      isMalformed = error.status == 400
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
    isMalformed = true
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

  var isWritable: Bool { outgoing.isEmpty && context?.channel.isWritable == true }

  func answer(_ answer: Answer) -> Int {
    let head = HPACKHeaders(answer.head)
    let hasContent = answer.head.content != .none
    let trailers = hasContent ? HPACKHeaders(lines: answer.trailers) : HPACKHeaders([])
    let count = hasContent ? answer.body.readableBytes : 0
    write(head, isEnd: count == 0 && trailers.isEmpty && !isMalformed)
    isAnswered = true
    if count > 0 { write(answer.body, of: answer.head) }
    conclude(with: trailers, isDue: count == 0 && !trailers.isEmpty)
    return head.byteCount + count + trailers.byteCount
  }

  func begin(_ head: AnswerHead, with piece: ByteBuffer) -> Int {
    let fields = HPACKHeaders(head)
    write(fields, isEnd: false)
    _ = write(piece)
    flush()
    return fields.byteCount + piece.readableBytes
  }

  func write(_ piece: ByteBuffer) -> Int {
    guard piece.readableBytes > 0, hold(piece.readableBytes) else { return 0 }
    outgoing.append(piece)
    pump()
    return piece.readableBytes
  }

  func end(with piece: ByteBuffer, trailers: ByteBuffer) -> Int {
    let trailers = HPACKHeaders(lines: trailers)
    isAnswered = true
    if piece.readableBytes > 0, hold(piece.readableBytes) { outgoing.append(piece) }
    // An end of its own is an empty frame, which costs nine bytes.
    conclude(with: trailers, isDue: outgoing.isEmpty)
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
    reset(isMalformed ? .protocolError : .internalError)
  }
}

extension ClientStream {
  /// The codec splits no head, and would end the connection for it, with everybody's streams. A client that asks again
  /// by HTTP/1.1, as it is told, gets what was recorded (RFC 9113, section 7).
  private func write(_ fields: HPACKHeaders, isEnd: Bool) {
    guard fields.fitsFrame else { return reset(.http11Required) }
    write(.headers(.init(headers: fields, endStream: isEnd)))
  }

  private func write(_ payload: HTTP2Frame.FramePayload, holding count: Int = 0, of bytes: Int = 0) {
    guard let context, !isReset else { return giveBack(count) }
    unwritten += 1
    unwrittenBytes += bytes
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.whenComplete { [self] in hasLeft($0, bytes, holding: count) }
    context.write(wrapOutboundOut(payload), promise: promise)
  }

  private func flush() {
    context?.flush()
    if unwritten > 0 || !outgoing.isEmpty, timer == nil { startTimer() }
  }

  /// Gives the codec as much as the client takes at the moment.
  private func pump() {
    guard !outgoing.isEmpty else { return }
    while unwrittenBytes < Self.codecBytes, let piece = outgoing.next(upTo: Self.pieceBytes) {
      let isLast = isAnswered && outgoing.isEmpty
      let isEnd = isLast && trailers.isEmpty && !isMalformed
      write(
        .data(.init(data: .byteBuffer(piece), endStream: isEnd)),
        holding: sharedBody == nil ? piece.readableBytes : 0, of: piece.readableBytes)
      if isLast, !trailers.isEmpty { write(trailers, isEnd: true) }
    }
    flush()
  }

  /// All of the answer is here.
  ///
  /// - Parameter isDue: whether nothing of the body is left that would end the stream with its last bytes.
  private func conclude(with trailers: HPACKHeaders, isDue: Bool) {
    delivery = nil
    self.trailers = trailers
    givePlaceBack()
    if !isDue {
      pump()
    } else if !trailers.isEmpty {
      write(trailers, isEnd: true)
    } else {
      write(.data(.init(data: .byteBuffer(ByteBuffer()), endStream: !isMalformed)))
    }
    flush()
    finish()
  }

  private func givePlaceBack() {
    if takesPlace { session.runEnded() }
    takesPlace = false
  }

  /// - Parameters:
  ///   - bytes: how much of a body it was.
  ///   - count: how much memory that held.
  private func hasLeft(_ result: Result<Void, any Error>, _ bytes: Int, holding count: Int) {
    giveBack(count)
    if case .failure = result { dropOutgoing() }
    unwritten -= 1
    unwrittenBytes -= bytes
    if bytes > 0, timer != nil { progressedAt = .now() }
    if !outgoing.isEmpty {
      pump()
      if isWritable { delivery?.becameWritable() }
    }
    guard unwritten == 0, outgoing.isEmpty else { return }
    stopTimer()
    leaveSharedBody()
    finish()
  }

  /// A request that broke the protocol ends with an error, once its refusal has left: a reset drops what has not. And a
  /// client that still sends a body, which nobody reads any more, is told to stop (RFC 9113, section 8.1).
  private func finish() {
    guard isAnswered, unwritten == 0, outgoing.isEmpty, !isReset else { return }
    if isMalformed {
      reset(.protocolError)
    } else if !isEnded {
      reset(.noError)
    }
  }

  private func reset(_ code: HTTP2ErrorCode) {
    isAnswered = true
    isEnded = true
    isReset = true
    dropOutgoing()
    context?.writeAndFlush(wrapOutboundOut(.rstStream(code)), promise: nil)
  }

  private func startTimer() {
    progressedAt = .now()
    startTimer(in: downstream.limits.writeTimeout.count)
  }

  private func startTimer(in milliseconds: Int64) {
    timer = downstream.context.timers.start(milliseconds: milliseconds) { [weak self] in
      self?.timerFired()
    }
  }

  private func stopTimer() {
    if let timer { downstream.context.timers.stop(timer) }
    timer = nil
  }

  /// A client that takes nothing of a body for so long will not: its stream is given up, or all of its connection where
  /// nothing leaves at all.
  private func timerFired() {
    timer = nil
    guard let context, unwritten > 0 || !outgoing.isEmpty else { return }
    let end = progressedAt + .milliseconds(downstream.limits.writeTimeout.count)
    let left = (end - .now()).nanoseconds
    guard left <= 0 else { return startTimer(in: left / 1_000_000 + 1) }
    downstream.environment.counters.add(.slowReaders)
    if context.channel.parent?.isWritable == false { return session.cut() }
    reset(.cancel)
  }
}

// The memory that its answer holds until the client has taken it.
extension ClientStream {
  /// Gives the body of a whole answer on its way. One that finds no memory is reset: its outcome stays recorded.
  private func write(_ body: ByteBuffer, of head: AnswerHead) {
    let count = body.readableBytes
    guard !isReset else { return }
    if count <= Self.smallBytes {
      session.memory.force(count)
      heldBytes += count
      outgoing.append(body)
    } else if case .recorded(let record, _) = head.source, count > Self.sharedAbove {
      share(body, recordedAt: record.recordedAt)
    } else if hold(count) {
      outgoing.append(body)
    }
  }

  private func share(_ body: ByteBuffer, recordedAt: StoreInstant) {
    guard
      let shared = downstream.sharedBodies.enter(
        body, recordedAt: recordedAt, limit: CaptureShare.memory(forOthers: downstream.limits.bodyMemory))
    else { return resetWithoutMemory() }
    guard session.memory.enter(shared, beside: heldBytes + (delivery?.heldBytes ?? 0)) else {
      downstream.sharedBodies.leave(shared)
      return resetWithoutMemory()
    }
    sharedBody = shared
    outgoing.append(shared.bytes)
  }

  private func leaveSharedBody() {
    guard let sharedBody else { return }
    session.memory.leave(sharedBody)
    downstream.sharedBodies.leave(sharedBody)
    self.sharedBody = nil
  }

  /// Takes memory for bytes that wait for the client; false, and the stream reset, where there is none.
  private func hold(_ count: Int) -> Bool {
    guard !isReset else { return false }
    guard session.memory.take(count, beside: heldBytes + (delivery?.heldBytes ?? 0)) else {
      resetWithoutMemory()
      return false
    }
    heldBytes += count
    return true
  }

  private func giveBack(_ count: Int) {
    guard count > 0 else { return }
    heldBytes -= count
    session.memory.give(count)
  }

  private func resetWithoutMemory() {
    downstream.environment.counters.add(.slowReaders)
    reset(.enhanceYourCalm)
  }

  private func dropOutgoing() {
    if sharedBody == nil { giveBack(outgoing.count) }
    outgoing.removeAll()
    leaveSharedBody()
  }
}

import Idempotency
import NIOCore
import Platform
import Telemetry
import Wire

/// A client's HTTP/1.1 connection: decodes requests to deliveries and writes their responses in order.
///
/// `HTTP1ConnectionMachine` decides, this handler acts. Confined to its event loop, hence `@unchecked Sendable`.
final class ClientConnection: ChannelInboundHandler, RemovableChannelHandler, DownstreamConnection,
  @unchecked Sendable
{
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The time that a client has to read its last response while it still sends.
  private static var lingering: TimeAmount { .seconds(2) }
  /// The step in which undecoded bytes are counted, a power of two.
  private static var undecodedStep: Int { 4 << 10 }

  let downstream: Downstream
  let peer: ClientPeer
  private(set) var context: ChannelHandlerContext?
  var machine = HTTP1ConnectionMachine()
  private(set) var decoder: RequestDecoder
  /// The bytes that are not decoded yet.
  private(set) var inbound = ByteBuffer()
  private(set) var delivery: Delivery?
  /// Its number among its loop's connections.
  private var number = 0
  /// Whether the socket is read.
  private var isReading = true
  /// Whether the connection is HTTP/2's by now.
  private var isLeftToHTTP2 = false
  /// Guards against decoding within a decoding step.
  private var isDecoding = false
  /// Whether the rest of the bytes that are here is decoded in a later turn of the loop.
  private var isContinuationDue = false
  /// The decoding that is left for this turn of the loop. Each response of a turn leads to the next request: a budget of
  /// each call of `decode` would never be over.
  private var budget = DecodingBudget()
  /// Guards against writing within a write, which can change the channel's writability.
  var isWriting = false
  /// The time at which the connection is cut unless something happens before.
  var deadline: NIODeadline
  /// The time of the last event that moved the deadline.
  var touchedAt = NIODeadline.now()
  var timer: LoopTimers.Token?
  /// The time at which the timer fires: the deadline, or an earlier one.
  var timerDue: NIODeadline = .distantFuture
  /// The number of all bytes ever written.
  var written = 0
  /// Whether the client has `write_timeout` to take a part of what waits.
  var isStalled = false
  /// The number of bytes that had left when the client was last seen to take some.
  var taken = 0
  private(set) var writer: SocketWriter?
  /// The memory that this connection's requests and responses hold.
  let memory: ConnectionMemory
  /// The part of `memory` for bytes that are not decoded, of a head that is not whole or behind a request.
  private var undecoded = 0
  var outgoing = OutgoingResponse()
  /// The part of `memory` for bytes that wait for the client.
  var outgoingMemory: OutgoingMemory

  init(downstream: Downstream, peer: ClientPeer) {
    self.downstream = downstream
    self.peer = peer
    memory = ConnectionMemory(on: downstream, from: peer)
    outgoingMemory = OutgoingMemory(of: memory)
    decoder = RequestDecoder(limits: downstream.limits.head)
    deadline = .now() + .milliseconds(downstream.limits.headerTimeout.count)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    downstream.context.loop.assertInEventLoop()
    self.context = context
    writer = SocketWriter(below: context.channel, isPlain: !peer.isSecure, batch: downstream.writes)
    writer?.didLeave = { [self] in didLeave() }
    writer?.didStall = { [self] in noteStalled() }
    number = downstream.connections.enter(self)
    startTimer()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let bytes = unwrapInboundIn(data)
    switch machine.bytesAction {
    case .drop: return
    case .passOn: return passOn(bytes)
    case .decode: break
    }
    if inbound.readableBytes == 0, delivery == nil { extendDeadline(by: downstream.limits.headerTimeout) }
    // Heads and bodies are slices of it.
    inbound.follow(with: bytes.compact)
    decode()
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    downstream.context.executor.drain()
    if !isContinuationDue { budget = DecodingBudget() }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable, !isWriting {
      if !outgoing.isEmpty { settleOutgoing() }
      if isWritable { delivery?.becameWritable() }
      if delivery == nil { decode() }
    }
    downstream.context.executor.drain()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case ChannelEvent.inputClosed? = event as? ChannelEvent { inputClosed() }
    context.fireUserInboundEventTriggered(event)
    downstream.context.executor.drain()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    writer?.flush()
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    connectionEnded()
    // Bytes that end the connection may follow the preface of HTTP/2, whose handlers are behind this one by then.
    context.fireChannelInactive()
  }

  /// Handles the end of a connection that was never active, and so does not become inactive.
  func handlerRemoved(context: ChannelHandlerContext) { connectionEnded() }

  private func connectionEnded() {
    guard context != nil else { return }
    detach()
    dropOutgoing()
    delivery?.disconnected()
    downstream.context.executor.drain()
  }

  /// Ends this handler's part in the connection.
  private func detach() {
    stopTimer()
    machine.close()
    memory.countWaiting(0, insteadOf: &undecoded)
    context = nil
    writer = nil
    downstream.connections.leave(number)
  }
}

// The client's bytes.
extension ClientConnection {
  private func inputClosed() {
    switch machine.inputEnded() {
    case .decode: decode()
    case .endTunnelBody: delivery?.bodyEnded()
    case .nothing: break
    }
    delivery?.halfClosed()
  }

  /// Decodes as far as the delivery under way allows.
  private func decode() {
    guard !isDecoding, !isContinuationDue else { return }
    isDecoding = true
    do throws(WireError) {
      repeat {
        while mayDecode, budget.take(), let event = try nextEvent() {
          try apply(event)
        }
      } while startDelivery() && inbound.readableBytes > 0 && !budget.isOver
    } catch {
      refuseFraming(error)
    }
    isDecoding = false
    // The channel takes its buffer again once nobody else holds it.
    if inbound.readableBytes == 0 { inbound = ByteBuffer() }
    // The end of a body that is counted needs no more bytes.
    if budget.isOver, mayDecode { return continueLater() }
    switch machine.didDecode(isWritable: isWritable) {
    case .nothing: break
    case .failBody: delivery?.bodyFailed(.badRequest(.malformed))
    case .close: closeOnceWritten()
    }
    if !countUndecoded() { refuseRest(.overloaded(.busy)) }
    updateReading()
  }

  /// Decodes the next event, and charges for its bytes unless they are a body's.
  private func nextEvent() throws(WireError) -> RequestDecoder.Event? {
    let before = inbound.readableBytes
    guard let event = try decoder.next(&inbound) else { return nil }
    switch event {
    case .head:
      budget.chargeRequest()
      budget.charge(headBytes: before - inbound.readableBytes)
    case .end: budget.charge(headBytes: before - inbound.readableBytes)
    case .body: break
    }
    return event
  }

  /// Counts the bytes that wait to be decoded, in steps that spare most connections the counting. Those of a body that
  /// is held back are the body's, and bounded with it.
  private func countUndecoded() -> Bool {
    guard context != nil else { return true }
    let isBody = delivery?.bodyHasEnded == false
    let count = isBody ? 0 : inbound.readableBytes & ~(Self.undecodedStep - 1)
    return memory.countWaiting(count, insteadOf: &undecoded)
  }

  /// Decodes on once the loop has looked after the others. Until then nothing more is read.
  private func continueLater() {
    isContinuationDue = true
    setReading(false)
    context?.eventLoop.inLaterTurn { [self] in
      isContinuationDue = false
      budget = DecodingBudget()
      guard context != nil else { return }
      decode()
      downstream.context.executor.drain()
    }
  }

  private func apply(_ event: consuming RequestDecoder.Event) throws(WireError) {
    switch consume event {
    case .head(let head):
      // The end of a request without a body follows at once. Until it is taken, the decoder adopts no new limits.
      if !head.hasBody { _ = try decoder.next(&inbound) }
      machine.didDecodeHead(hasBody: head.hasBody)
      delivery = Delivery(request: head, channel: self, memory: memory, peer: peer, on: downstream)
      if machine.hasInputEnded { delivery?.halfClosed() }
    case .body(let piece):
      delivery?.received(piece)
    case .end:
      machine.didDecodeEnd()
      delivery?.bodyEnded()
    }
  }

  private var mayDecode: Bool {
    switch machine.decoding {
    case .head: isWritable
    case .body: delivery?.wantsBody == true
    case .restOfBody: true
    case .nothing: false
    }
  }

  /// Starts a new delivery once all bytes of it that are here have been decoded: mostly the whole request, whose
  /// response may then be written at once.
  ///
  /// - Returns: Whether it was, and the next request may be decoded.
  private func startDelivery() -> Bool {
    guard let delivery, delivery.start(on: downstream) else { return false }
    self.delivery?.countHead()
    return self.delivery == nil
  }

  private func refuseFraming(_ error: WireError) {
    let isHTTP2 = inbound.readableBytesView.starts(with: "PRI * HTTP/2.0\r\n".utf8)
    refuseRest(.unreadable(error), isHTTP2: isHTTP2)
    if !isLeftToHTTP2 { downstream.environment.counters.add(.framingErrors) }
  }

  /// Refuses the bytes that are here and all that follow. A request that is whole still gets its response.
  private func refuseRest(_ problem: Problem, isHTTP2: Bool = false) {
    switch machine.didFailDecoding(isHTTP2: isHTTP2) {
    case .becomeHTTP2: becomeHTTP2()
    case .refuse:
      downstream.noteUnread(problem, from: peer)
      refuse(problem)
    case .failBody:
      inbound.clear()
      delivery?.bodyFailed(problem)
      _ = startDelivery()
    case .nothing: break
    }
  }

  /// Leaves the connection to the handlers of HTTP/2, with the bytes that are here.
  private func becomeHTTP2() {
    writer?.flush()
    guard let context else { return }
    detach()
    do {
      try ClientSession.start(on: context.channel, downstream: downstream, peer: peer)
      isLeftToHTTP2 = true
      context.fireChannelRead(wrapInboundOut(inbound))
      context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    } catch {
      context.close(promise: nil)
    }
  }

  func takeUndecoded() -> ByteBuffer {
    defer { inbound = ByteBuffer() }
    return inbound
  }

  private func passOn(_ bytes: ByteBuffer) {
    extendDeadline(by: downstream.limits.tunnelTimeout)
    delivery?.received(bytes)
    updateReading()
  }

  func resumeBody() { decode() }

  private func updateReading() {
    guard !isContinuationDue else { return }
    switch machine.reading {
    case .whileRoom: setReading(inbound.readableBytes < ConnectionLimits.pipelineBytes || mayDecode)
    case .whileTaken: setReading(delivery?.wantsBody ?? true)
    case .always: setReading(true)
    case .unchanged: break
    }
  }

  private func setReading(_ isWanted: Bool) {
    guard let context, isWanted != isReading else { return }
    isReading = isWanted
    context.setReading(isWanted)
  }
}

// The end of an exchange, and of the connection.
extension ClientConnection {
  func finish(_ delivery: Delivery) {
    if delivery.configuration !== downstream.configuration { decoder.adopt(downstream.limits.head) }
    self.delivery = nil
    outgoingMemory.isAdmitted = false
    let hasUndecoded = inbound.readableBytes > 0
    let hasUnread = { [self] in context.flatMap { writer?.hasUnread($0) } ?? false }
    switch machine.responseEnded(hasUndecoded: hasUndecoded, hasUnread: hasUnread) {
    case .awaitNext:
      updateReading()
      if downstream.environment.isDraining { drain() }
    case .decodeNext:
      if hasUndecoded { extendDeadline(by: downstream.limits.headerTimeout) }
      decode()
    case .close: closeOnceWritten()
    case .linger: closeLingering()
    case .nothing: break
    }
  }

  /// Responds to bytes that are no request, and closes.
  func refuse(_ problem: Problem) {
    write(bytes: ResponseEncoder.whole(ClientResponse(problem), minorVersion: 1, isClosing: true))
    closeLingering()
  }

  private func closeLingering() {
    inbound.clear()
    memory.countWaiting(0, insteadOf: &undecoded)
    guard let context else { return }
    isReading = true
    try? context.channel.syncOptions?.setOption(.autoRead, value: true)
    onceWritten { $0.close(mode: .output, promise: nil) }
    deadline = .now() + Self.lingering
    restartTimer()
  }

  func closeOnceWritten() { onceWritten { $0.close(promise: nil) } }

  /// Calls `act` once all bytes written before have left, because closing drops unsent bytes.
  private func onceWritten(_ act: @escaping @Sendable (any Channel) -> Void) {
    writer?.flush()
    guard let context else { return }
    let channel = context.channel
    let written = context.eventLoop.makePromise(of: Void.self)
    written.futureResult.whenComplete { _ in act(channel) }
    context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
  }

  func abort() {
    delivery = nil
    cut()
  }

  /// Drops what waits for the client, and resets the connection.
  func cut() {
    if machine.isResponseQueued { delivery = nil }
    machine.close()
    dropOutgoing()
    reset()
  }

  /// Ends the connection by a reset.
  func reset() {
    writer?.flush()
    context?.reset()
  }

  /// Holds the next request against the limits that are now. A head or a delivery under way keeps the old ones.
  func adopt(_ limits: LimitSettings) {
    if delivery == nil { decoder.adopt(limits.head) }
  }
}

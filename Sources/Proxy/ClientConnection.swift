import Idempotency
import Loop
import NIOCore
import Telemetry
import Wire

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// One client's connection of HTTP/1.1: bytes in, deliveries out, and their answers back in order.
///
/// One delivery is under way at a time; what a client pipelines behind it stays undecoded until its turn.
final class ClientConnection<Store: RecordStore, Backend: Upstream>: ChannelInboundHandler,
  @unchecked Sendable
{
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// How much may wait undecoded behind the delivery under way before the connection is not read any more: room for
  /// a few pipelined requests.
  private static var floodMark: Int { 64 << 10 }

  /// How long a client may take to read the last answer of a connection whose bytes are not all read.
  private static var lingering: TimeAmount { .seconds(2) }

  private let worker: Worker<Store, Backend>
  private let peer: ClientPeer
  private var context: ChannelHandlerContext?
  private var decoder: RequestDecoder
  private var inbound = ByteBuffer()
  private var delivery: Delivery?
  private var isReading = true
  private var isDecoding = false
  /// Set once nothing more of this connection is decoded: it closes when its answer is out.
  private var isClosing = false
  /// When the connection is cut unless something happens before.
  private var deadline: NIODeadline
  private var timer: LoopTimers.Token?
  /// When the timer fires: at the deadline, or before it where that has moved on since.
  private var timerDue: NIODeadline = .distantFuture

  init(worker: Worker<Store, Backend>, peer: ClientPeer) {
    self.worker = worker
    self.peer = peer
    decoder = RequestDecoder(limits: HeadLimits(headBytes: worker.environment.limits.headerBytes))
    deadline = .now() + .milliseconds(worker.environment.limits.headerTimeout.count)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    worker.connections[ObjectIdentifier(self)] = self
    startTimer()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    guard !isClosing else { return }
    if inbound.readableBytes == 0 {
      if delivery == nil { extendDeadline(by: worker.environment.limits.headerTimeout) }
      inbound = bytes
    } else {
      inbound.writeBuffer(&bytes)
    }
    decode()
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    worker.context.executor.drain()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { delivery?.becameWritable() }
    worker.context.executor.drain()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    // A half-close: the client has sent all it will, and may still read its answer.
    if case ChannelEvent.inputClosed? = event as? ChannelEvent {
      if delivery == nil { context.close(promise: nil) }
      isClosing = delivery?.bodyHasEnded ?? true
      if let delivery, !delivery.bodyHasEnded { delivery.bodyFailed(.badRequest(.malformed)) }
    }
    context.fireUserInboundEventTriggered(event)
    worker.context.executor.drain()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    if let timer { worker.context.timers.stop(timer) }
    timer = nil
    isClosing = true
    self.context = nil
    worker.connections[ObjectIdentifier(self)] = nil
    worker.environment.counters.change(.openConnections, by: -1)
    delivery?.disconnected()
    worker.context.executor.drain()
  }
}

extension ClientConnection {
  /// Decodes as far as the delivery under way allows.
  private func decode() {
    guard !isDecoding, !isClosing else { return }
    isDecoding = true
    do {
      repeat {
        while mayDecode, let event = try decoder.next(&inbound) {
          switch event {
          case .head(let head): delivery = Delivery(request: head, channel: self, peer: peer, worker: worker)
          case .body(let piece): delivery?.received(piece)
          case .end: delivery?.bodyEnded()
          }
        }
      } while startDelivery() && inbound.readableBytes > 0
    } catch {
      refuseFraming(error)
    }
    isDecoding = false
    updateReading()
  }

  /// Starts a new delivery once all of it that is here has been decoded: mostly the whole request, which then may be
  /// answered at once. True where it was, and the next may be decoded.
  private func startDelivery() -> Bool {
    guard let delivery, !delivery.isStarted else { return false }
    delivery.isStarted = true
    worker.start(delivery)
    return self.delivery == nil && !isClosing
  }

  /// A body is decoded as far as it is wanted; the next head once the answer before it is out.
  private var mayDecode: Bool {
    guard let delivery else { return true }
    return !delivery.bodyHasEnded && delivery.wantsBody
  }

  /// Bytes that are no request: an answer, and the end of the connection, since what follows cannot be told apart.
  private func refuseFraming(_ error: WireError) {
    isClosing = true
    worker.environment.counters.add(.framingErrors)
    let problem = Problem(error)
    if let delivery {
      // Its answer follows, and the connection closes after it.
      delivery.bodyFailed(problem)
      _ = startDelivery()
      return
    }
    worker.environment.counters.add(.refused)
    write(AnswerEncoder.problem(problem, isClosing: true))
    closeLingering()
  }

  private func updateReading() {
    guard let context else { return }
    let wanted = isClosing || inbound.readableBytes < Self.floodMark || mayDecode
    guard wanted != isReading else { return }
    isReading = wanted
    try? context.channel.syncOptions?.setOption(.autoRead, value: wanted)
    if wanted { context.read() }
  }

  /// Ends the writing side and waits a moment for the client to read: closing at once with bytes unread would reset
  /// the connection, and the answer might be lost with it.
  private func closeLingering() {
    isClosing = true
    inbound.clear()
    guard let context else { return }
    isReading = true
    try? context.channel.syncOptions?.setOption(.autoRead, value: true)
    onceWritten { $0.close(mode: .output, promise: nil) }
    deadline = .now() + Self.lingering
    restartTimer()
  }

  /// Acts once all that was written before has left: closing drops what has not.
  private func onceWritten(_ act: @escaping @Sendable (any Channel) -> Void) {
    guard let context else { return }
    let channel = context.channel
    let written = context.eventLoop.makePromise(of: Void.self)
    written.futureResult.whenComplete { _ in act(channel) }
    context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
  }
}

extension ClientConnection: DeliveryChannel {
  var isWritable: Bool { context?.channel.isWritable ?? false }

  func write(_ bytes: ByteBuffer) {
    extendDeadline(by: worker.environment.limits.idleTimeout)
    context?.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
  }

  func resumeBody() {
    decode()
  }

  func finished(_ delivery: Delivery) {
    guard delivery.bodyHasEnded, !delivery.mustClose, !isClosing else {
      self.delivery = nil
      if delivery.bodyHasEnded, inbound.readableBytes == 0 {
        isClosing = true
        onceWritten { $0.close(promise: nil) }
      } else {
        closeLingering()
      }
      return
    }
    self.delivery = nil
    if inbound.readableBytes > 0 { extendDeadline(by: worker.environment.limits.headerTimeout) }
    if inbound.readableBytes > 0 || !isReading { decode() }
  }

  func abort() {
    isClosing = true
    delivery = nil
    // A reset, not an orderly end: a client must not take a cut answer for a whole one.
    if let socket = context?.channel as? any SocketOptionProvider {
      _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0))
    }
    context?.close(promise: nil)
  }
}

extension ClientConnection {
  private func extendDeadline(by span: Milliseconds) {
    deadline = .now() + .milliseconds(span.count)
    if deadline < timerDue { restartTimer() }
  }

  private func startTimer() {
    timerDue = deadline
    let left = max((deadline - .now()).nanoseconds / 1_000_000, 1)
    timer = worker.context.timers.start(milliseconds: left) { [weak self] in self?.timerFired() }
  }

  private func restartTimer() {
    if let timer { worker.context.timers.stop(timer) }
    startTimer()
  }

  /// The deadline moves on with each request, the timer only when it has fired: mostly no timer is started for one.
  private func timerFired() {
    timer = nil
    guard let context else { return }
    if let delivery, delivery.answerState != .begun || context.channel.isWritable {
      // The delivery has time-outs of its own; only a client that does not read its answer has none.
      extendDeadline(by: worker.environment.limits.idleTimeout)
    }
    guard NIODeadline.now() >= deadline else {
      startTimer()
      return
    }
    if delivery == nil, inbound.readableBytes > 0, !isClosing {
      refuseSlowHead()
    } else {
      context.close(promise: nil)
    }
  }

  private func refuseSlowHead() {
    worker.environment.counters.add(.refused)
    write(AnswerEncoder.problem(.requestTimeout, isClosing: true))
    closeLingering()
  }

  /// Closes a connection that waits for its next request; one with a delivery under way closes after its answer.
  func drain() {
    guard delivery == nil, inbound.readableBytes == 0 else { return }
    isClosing = true
    context?.close(promise: nil)
  }
}

import Idempotency
import Loop
import NIOCore
import NIOSSL
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
final class ClientConnection: ChannelInboundHandler, RemovableChannelHandler, DownstreamConnection,
  @unchecked Sendable
{
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// How long a client may take to read the last answer of a connection whose bytes are not all read.
  private static var lingering: TimeAmount { .seconds(2) }
  /// What of a body is written as one: NIO holds what the client does not take of it.
  private static var pieceBytes: Int { 64 << 10 }

  let downstream: Downstream
  private let peer: ClientPeer
  var context: ChannelHandlerContext?
  var decoder: RequestDecoder
  var inbound = ByteBuffer()
  var delivery: Delivery?
  private var isReading = true
  /// Whether nothing has been decoded yet: the connection may still turn out to be one of HTTP/2.
  private var isNew = true
  private var isDecoding = false
  /// Whether client and backend have switched protocols: bytes pass as they are.
  var isTunnel = false
  /// Whether the client has sent all that it will.
  private var hasInputEnded = false
  /// Set once nothing more of this connection is decoded: it closes when its answer is out.
  var isClosing = false
  /// Whether the connection closes after the answer under way.
  private var closesAfterAnswer = false
  /// How the body of the answer under way is delimited.
  private var framing = AnswerEncoder.Framing.none
  /// When the connection is cut unless something happens before.
  var deadline: NIODeadline
  var timer: LoopTimers.Token?
  /// When the timer fires: at the deadline, or before it where that has moved on since.
  var timerDue: NIODeadline = .distantFuture
  /// All bytes ever written, and how many of them had left when the client was last seen to take some.
  var written = 0
  var taken = 0
  private var writer: SocketWriter?
  /// What this connection's requests and responses hold.
  let memory: ConnectionMemory
  /// What of the answer under way has not been written yet, since the client does not take it.
  var outgoing = OutgoingBody()
  /// Where that is a recorded body that others read as well.
  var sharedBody: SharedBody?
  /// Whether that is found out once the client has taken what it takes at once.
  private(set) var isSharing = false
  /// What waits for the client and is counted.
  var heldBytes = 0
  private var isWriting = false
  /// Whether the answer ends with what is outgoing.
  private var isEnding = false

  init(downstream: Downstream, peer: ClientPeer) {
    self.downstream = downstream
    self.peer = peer
    memory = ConnectionMemory(on: downstream)
    decoder = RequestDecoder(limits: downstream.limits.head)
    deadline = .now() + .milliseconds(downstream.limits.headerTimeout.count)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    writer = SocketWriter(below: context.channel, isPlain: !peer.isSecure)
    writer?.didLeave = { [self] in if heldBytes > 0 { account() } }
    downstream.connections[ObjectIdentifier(self)] = self
    startTimer()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    guard !isClosing else { return }
    if isTunnel { return passOn(bytes) }
    if inbound.readableBytes == 0 {
      if delivery == nil { extendDeadline(by: downstream.limits.headerTimeout) }
      inbound = bytes
    } else {
      inbound.writeBuffer(&bytes)
    }
    decode()
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    downstream.context.executor.drain()
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
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    stopTimer()
    isClosing = true
    self.context = nil
    writer = nil
    dropOutgoing()
    downstream.connections[ObjectIdentifier(self)] = nil
    downstream.environment.counters.change(.openConnections, by: -1)
    delivery?.disconnected()
    downstream.context.executor.drain()
  }
}

extension ClientConnection {
  /// A half-close: the client has sent all it will, and may still read the answers to it.
  private func inputClosed() {
    hasInputEnded = true
    if isTunnel { delivery?.bodyEnded() } else { decode() }
  }

  /// What can be decoded has been, and nothing more comes: what is unfinished now stays so.
  private func settleInput() {
    if let delivery {
      if !delivery.bodyHasEnded, delivery.bodyFailure == nil { delivery.bodyFailed(.badRequest(.malformed)) }
    } else if mayDecode, !isClosing {
      isClosing = true
      onceWritten { $0.close(promise: nil) }
    }
  }

  /// Decodes as far as the delivery under way allows.
  private func decode() {
    if isTunnel { return updateReading() }
    guard !isDecoding, !isClosing else { return }
    isDecoding = true
    do {
      repeat {
        while mayDecode, let event = try decoder.next(&inbound) {
          switch event {
          case .head(let head):
            isNew = false
            delivery = Delivery(
              request: head, channel: self, memory: memory, peer: peer, on: downstream)
          case .body(let piece): delivery?.received(piece)
          case .end(let trailers): delivery?.bodyEnded(trailers: trailers)
          }
        }
      } while startDelivery() && inbound.readableBytes > 0
    } catch {
      refuseFraming(error)
    }
    isDecoding = false
    if hasInputEnded { settleInput() }
    updateReading()
  }

  /// Starts a new delivery once all of it that is here has been decoded: mostly the whole request, which then may be
  /// answered at once. True where it was, and the next may be decoded.
  private func startDelivery() -> Bool {
    guard let delivery, !delivery.isStarted else { return false }
    delivery.isStarted = true
    downstream.start(delivery)
    return self.delivery == nil && !isClosing
  }

  /// A body is decoded as far as it is wanted; the next head once the answer before it is out and the client takes
  /// answers: else one who only asks would fill the memory with them.
  private var mayDecode: Bool {
    guard let delivery else { return isWritable }
    return !delivery.bodyHasEnded && (delivery.wantsBody || hasInputEnded)
  }

  /// Bytes that are no request: an answer, and the end of the connection, since what follows cannot be told apart.
  private func refuseFraming(_ error: WireError) {
    if isNew, becomeHTTP2() { return }
    isClosing = true
    downstream.environment.counters.add(.framingErrors)
    let problem = Problem.unreadable(error)
    if let delivery {
      // Its answer follows, and the connection closes after it.
      delivery.bodyFailed(problem)
      _ = startDelivery()
      return
    }
    downstream.metrics.refusedUnread(RefusalReason(problem.code))
    refuse(problem)
  }

  /// Makes room for HTTP/2 where the client speaks it without having asked (RFC 9113, section 3.3): it begins with a
  /// line that is no request of HTTP/1.1, so that nobody else pays for this look.
  private func becomeHTTP2() -> Bool {
    guard let context, inbound.readableBytesView.starts(with: "PRI * HTTP/2.0\r\n".utf8) else { return false }
    stopTimer()
    self.context = nil
    writer = nil
    isClosing = true
    downstream.connections[ObjectIdentifier(self)] = nil
    do {
      try ClientSession.start(on: context.channel, downstream: downstream, peer: peer)
      context.fireChannelRead(wrapInboundOut(inbound))
      context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    } catch {
      context.close(promise: nil)
    }
    return true
  }

  /// Answers what is no delivery, and closes.
  func refuse(_ problem: Problem) {
    write(bytes: AnswerEncoder.whole(Answer(problem), minorVersion: 1, isClosing: true))
    closeLingering()
  }

  private func updateReading() {
    guard let context, !hasInputEnded else { return }
    let hasRoom =
      isTunnel ? delivery?.wantsBody ?? true : inbound.readableBytes < downstream.limits.pipelineBytes
    let wanted = isClosing || hasRoom || mayDecode
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
  var connection: ObjectIdentifier { ObjectIdentifier(self) }

  var isWritable: Bool { outgoing.isEmpty && context?.channel.isWritable == true }

  func answer(_ answer: Answer) -> Int {
    guard let delivery else { return 0 }
    let minorVersion = delivery.request.head.minorVersion
    let isClosing = decideClosing(after: delivery)
    guard answer.body.readableBytes <= Self.pieceBytes || answer.head.content == .none else {
      return answerInPieces(answer, minorVersion: minorVersion, isClosing: isClosing)
    }
    let bytes = AnswerEncoder.whole(answer, minorVersion: minorVersion, isClosing: isClosing)
    write(bytes: bytes)
    finished(delivery)
    return bytes.readableBytes
  }

  /// Writes a large answer as its client takes it, without copying the body.
  private func answerInPieces(_ answer: Answer, minorVersion: UInt8, isClosing: Bool) -> Int {
    framing = AnswerEncoder.Framing(
      answer.head.content, hasTrailers: answer.trailers.readableBytes > 0, minorVersion: minorVersion)
    let head = AnswerEncoder.head(
      answer.head, framing: framing, minorVersion: minorVersion, isClosing: isClosing, bodyCapacity: 0)
    let before = written + outgoing.count
    outgoing.append(head)
    append(answer.body)
    appendEnd(trailers: answer.trailers)
    let count = written + outgoing.count - before
    isEnding = true
    guard case .recorded(let record, _) = answer.head.source else {
      settleOutgoing()
      return count
    }
    isSharing = true
    writeOutgoing()
    isSharing = false
    if !outgoing.isEmpty { share(answer.body, of: record) }
    account()
    endIfWritten()
    return count
  }

  /// Adds a piece of a body in its framing to what is outgoing.
  private func append(_ piece: ByteBuffer) {
    guard piece.readableBytes > 0, framing != .none else { return }
    guard framing == .chunked else { return outgoing.append(piece) }
    var start = ByteBufferAllocator().buffer(capacity: 16)
    start.writeChunkHeader(piece.readableBytes)
    var end = ByteBufferAllocator().buffer(capacity: 2)
    end.writeChunkEnd()
    outgoing.append(start)
    outgoing.append(piece)
    outgoing.append(end)
  }

  private func appendEnd(trailers: ByteBuffer) {
    guard framing == .chunked else { return }
    var end = ByteBufferAllocator().buffer(capacity: trailers.readableBytes + 8)
    end.writeLastChunk(trailers: trailers)
    outgoing.append(end)
  }

  /// Writes as much as the client takes at the moment.
  private func writeOutgoing() {
    isWriting = true
    while context?.channel.isWritable == true, let piece = outgoing.next(upTo: Self.pieceBytes) {
      write(bytes: piece)
    }
    isWriting = false
    if outgoing.isEmpty { leaveSharedBody() }
  }

  private func endIfWritten() {
    guard isEnding, outgoing.isEmpty, let delivery else { return }
    isEnding = false
    finished(delivery)
  }

  /// Writes what can be, counts the rest, and ends the answer where that was all of it.
  private func settleOutgoing() {
    writeOutgoing()
    account()
    endIfWritten()
  }

  func begin(_ head: AnswerHead, with piece: ByteBuffer) -> Int {
    guard let delivery else { return 0 }
    let minorVersion = delivery.request.head.minorVersion
    framing = AnswerEncoder.Framing(head.content, minorVersion: minorVersion)
    let isClosing = decideClosing(after: delivery)
    if framing == .close { closesAfterAnswer = true }
    let isLarge = piece.readableBytes > Self.pieceBytes
    var bytes = AnswerEncoder.head(
      head, framing: framing, minorVersion: minorVersion, isClosing: isClosing,
      bodyCapacity: isLarge ? 0 : piece.readableBytes)
    if !isLarge { AnswerEncoder.writePiece(piece, framing: framing, to: &bytes) }
    write(bytes: bytes)
    return bytes.readableBytes + (isLarge ? writeInPieces(piece) : 0)
  }

  func write(_ piece: ByteBuffer) -> Int {
    guard outgoing.isEmpty, piece.readableBytes <= Self.pieceBytes else { return writeInPieces(piece) }
    guard framing == .chunked else {
      if framing != .none { write(bytes: piece) }
      return piece.readableBytes
    }
    var bytes = ByteBufferAllocator().buffer(capacity: piece.readableBytes + 24)
    AnswerEncoder.writePiece(piece, framing: framing, to: &bytes)
    write(bytes: bytes)
    return bytes.readableBytes
  }

  private func writeInPieces(_ piece: ByteBuffer) -> Int {
    let before = outgoing.count
    append(piece)
    let count = outgoing.count - before
    settleOutgoing()
    return count
  }

  func end(with piece: ByteBuffer, trailers: ByteBuffer) -> Int {
    guard let delivery else { return 0 }
    guard outgoing.isEmpty, piece.readableBytes <= Self.pieceBytes else {
      let before = outgoing.count
      append(piece)
      appendEnd(trailers: trailers)
      let count = outgoing.count - before
      isEnding = true
      settleOutgoing()
      return count
    }
    var bytes = ByteBufferAllocator().buffer(capacity: piece.readableBytes + trailers.readableBytes + 32)
    AnswerEncoder.writePiece(piece, framing: framing, to: &bytes)
    if framing == .chunked { bytes.writeLastChunk(trailers: trailers) }
    if bytes.readableBytes > 0 { write(bytes: bytes) }
    finished(delivery)
    return bytes.readableBytes
  }

  func sendContinue() {
    write(bytes: ByteBuffer(staticString: "HTTP/1.1 100 Continue\r\n\r\n"))
  }

  func interim(_ head: AnswerHead) {
    write(
      bytes: AnswerEncoder.head(head, framing: .none, minorVersion: 1, isClosing: false, bodyCapacity: 0))
  }

  func switchProtocols(_ head: MessageHead) -> Int {
    isTunnel = true
    framing = .close
    closesAfterAnswer = true
    let bytes = AnswerEncoder.switching(head)
    write(bytes: bytes)
    if inbound.readableBytes > 0 { delivery?.received(inbound) }
    inbound = ByteBuffer()
    // Half-closed already: nothing more comes.
    if hasInputEnded { delivery?.bodyEnded() }
    return bytes.readableBytes
  }

  private func passOn(_ bytes: ByteBuffer) {
    extendDeadline(by: downstream.limits.tunnelTimeout)
    delivery?.received(bytes)
    updateReading()
  }

  func resumeBody() {
    decode()
  }

  /// Whether the answer must tell that the connection closes.
  private func decideClosing(after delivery: Delivery) -> Bool {
    closesAfterAnswer =
      !delivery.request.keepAlive || !delivery.bodyHasEnded || downstream.environment.isDraining
    return closesAfterAnswer
  }

  private func write(bytes: ByteBuffer) {
    guard let context else { return }
    written += bytes.readableBytes
    let hasLeft = writer?.write(bytes, context) == true
    if !hasLeft, writer?.isWaiting == true { account() }
    if hasLeft || context.channel.isWritable {
      extendDeadline(by: isTunnel ? downstream.limits.tunnelTimeout : downstream.limits.idleTimeout)
    } else {
      taken = written - unread
      extendDeadline(by: downstream.limits.writeTimeout)
    }
  }

  private func finished(_ delivery: Delivery) {
    if delivery.generation !== downstream.generation { decoder.adopt(downstream.limits.head) }
    guard delivery.bodyHasEnded, !closesAfterAnswer, !isClosing else {
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
    if inbound.readableBytes > 0 { extendDeadline(by: downstream.limits.headerTimeout) }
    if inbound.readableBytes > 0 || !isReading || hasInputEnded { decode() }
  }

  func abort() {
    isClosing = true
    delivery = nil
    dropOutgoing()
    reset()
  }

  /// A reset, not an orderly end: a client must not take a cut answer for a whole one.
  func reset() {
    if let socket = context?.channel as? any SocketOptionProvider {
      _ = socket.setSoLinger(linger(l_onoff: 1, l_linger: 0))
    }
    guard let context else { return }
    // Past TLS, which would take its leave in order.
    let secure = try? context.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)
    (secure ?? context).close(promise: nil)
  }
}

import Idempotency
import NIOCore
import NIOHTTP2
import Platform
import Wire

/// One HTTP/2 stream to a backend, which carries one exchange. Confined to its loop.
final class HTTP2Stream: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  private enum Stage {
    /// NIO is creating the stream. Followed by `running` or `over`.
    case opening
    /// The request is being sent, or its response awaited. Followed by `draining` or `over`.
    case running
    /// Nobody awaits the response any more: the client is gone, or the response is malformed. The rest is read and
    /// dropped, until it ends or has become longer than `left` bytes, or the timer has fired. Followed by `over`.
    case draining(left: Int, LoopTimers.Token)
    /// The exchange gets no more events. The stream may still count on its connection.
    case over

    var isOpening: Bool {
      if case .opening = self { true } else { false }
    }
  }

  /// The bytes and the time within which a response that nobody awaits any more may end by itself, in milliseconds.
  /// Most do at once, and cost the connection no reset; longer ones are not worth it, and their backend is to notice
  /// soon that nobody listens.
  private static let maxDrained = (bytes: 64 << 10, time: Int64(1000))

  let connection: HTTP2Connection
  private let exchange: HTTPExchange
  private(set) var context: ChannelHandlerContext?
  private var stage = Stage.opening
  private var holdsSlot = true
  private var id: HTTP2StreamID?
  private var method = MessageHead.Method.other
  /// The status of the final response, once its fields have arrived.
  private var status: Int?
  /// The length check of the body. Set with the final head.
  private var length: BodyLength?
  /// Whether any part of a response has arrived. A backend that states afterwards that it did not process the request
  /// contradicts itself.
  private var hasHeard = false
  private var isReading = true
  /// The number of reads of the connection when the request was sent.
  private var readsBefore = 0
  private var reset: HTTP2ErrorCode?
  /// The number of pieces of a streamed body that wait for the backend's window or for the socket.
  var waitingPieces = 0

  init(of connection: HTTP2Connection, for exchange: HTTPExchange) {
    self.connection = connection
    self.exchange = exchange
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let payload = unwrapInboundIn(data)
    if case .rstStream(let code) = payload { reset = code }
    connection.didReceiveResponse()
    if case .data(let data) = payload { drain(data.data.readableBytes) }
    guard case .running = stage else { return }
    do throws(WireError) {
      switch payload {
      case .headers(let block):
        if !hasHeard, let id { connection.didRespond(on: id) }
        hasHeard = true
        let fields = block.headers.map { (name: $0.name, value: $0.value) }
        if length == nil {
          status = ResponseHead.finalStatus(http2: fields)
          try begin(fields, isEnd: block.endStream)
        } else {
          try end(fields, isEnd: block.endStream)
        }
      case .data(let data):
        hasHeard = true
        if case .byteBuffer(let piece) = data.data { try receive(piece, isEnd: data.endStream) }
      default: break
      }
    } catch {
      exchange.failed("\(error.sentence)", status: status)
    }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if isWritable { exchange.becameWritable() }
  }

  /// Counts bytes of a response that nobody awaits any more.
  private func drain(_ count: Int) {
    guard case .draining(let left, let timer) = stage else { return }
    stage = .draining(left: left - count, timer)
    if count > left { endDraining() }
  }

  private func endDraining() {
    guard case .draining(_, let timer) = stage else { return }
    connection.pool.upstream.context.timers.stop(timer)
    stage = .over
    close()
  }

  /// Closes the stream. After a reset NIO closes the channel itself; any other error also ends it.
  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func channelInactive(context: ChannelHandlerContext) {
    self.context = nil
    switch stage {
    case .opening: giveUp()
    case .running: ended()
    case .draining(_, let timer):
      connection.pool.upstream.context.timers.stop(timer)
      stage = .over
      releaseSlot()
    case .over: releaseSlot()
    }
  }

  /// Handles the creation of the stream, or its failure. The backend does not know of the stream yet.
  func opened() {
    guard case .opening = stage else { return }
    guard exchange.isConnecting, context?.channel.isActive == true, connection.takes(exchange) else {
      return giveUp()
    }
    exchange.run(on: self)
  }

  /// Restarts the exchange, if it still wants to connect, because nothing was sent.
  private func giveUp() {
    release()
    if exchange.isConnecting { connection.pool.start(exchange) }
  }

  /// Handles the end of the stream before the response was complete.
  private func ended() {
    stage = .over
    releaseSlot()
    if !hasHeard, reset == .refusedStream {
      exchange.wasRefused("the backend refused the request's stream")
    } else if !hasHeard, let id, connection.disowns(id) {
      exchange.wasRefused("the backend left before it took the request")
    } else if let reset {
      exchange.connectionEnded("the backend reset the request's stream (\(reset))")
    } else {
      exchange.connectionEnded(
        connection.error.map(Connector.reason) ?? "the connection ended before the response did")
    }
  }

  private func releaseSlot() {
    guard holdsSlot else { return }
    holdsSlot = false
    connection.ended()
  }

  /// Closes the stream, whose request or response has not ended. If the backend knows of it, that is a reset.
  private func close() {
    guard let context else { return }
    if id != nil, reset == nil { connection.willReset() }
    context.close(promise: nil)
  }
}

// The frames from the backend.
extension HTTP2Stream {
  private func begin(_ fields: [(name: String, value: String)], isEnd: Bool) throws(WireError) {
    let head = try ResponseHead(http2: fields, isEnd: isEnd, method: method, limits: .backend)
    guard !head.isInterim else {
      if head.head.status != 100 { exchange.received(interim: head.head) }
      return
    }
    if head.head.bindsConnection { connection.bind() }
    length = BodyLength(response: head.framing)
    if isEnd { try length?.end() }
    exchange.received(head)
    if isEnd { finish(trailers: ByteBuffer()) }
  }

  private func receive(_ piece: ByteBuffer, isEnd: Bool) throws(WireError) {
    guard length != nil else { throw .badStatusLine }
    try length?.add(piece.readableBytes)
    if isEnd { try length?.end() }
    if piece.readableBytes > 0 { exchange.received(piece.compact) }
    if isEnd { finish(trailers: ByteBuffer()) }
  }

  /// Handles the trailers.
  private func end(_ fields: [(name: String, value: String)], isEnd: Bool) throws(WireError) {
    guard isEnd else { throw .forbiddenTrailer }
    try length?.end()
    finish(trailers: try HTTP2Trailers.responseLines(fields, limits: .backend))
  }

  private func finish(trailers: ByteBuffer) {
    stage = .over
    exchange.ended(trailers: trailers)
    // The rest of the request is useless now.
    if !exchange.isSent { close() }
  }
}

// The exchange's view of the stream.
extension HTTP2Stream: ExchangeConnection {
  var wasUsed: Bool { false }

  /// NIO lets 64 KiB wait on each stream, and a connection has many. One piece is enough, which stays counted.
  var isWritable: Bool { waitingPieces == 0 && context?.channel.isWritable ?? false }

  var bytesAhead: Int { HTTP2Connection.streamWindow }

  func begin(_ exchange: HTTPExchange) {
    connection.pool.upstream.context.loop.assertInEventLoop()
    invariant(stage.isOpening && holdsSlot && id == nil, "a stream carries a second exchange")
    invariant(connection.takesBody(of: exchange), "a claimed head leaves where its body cannot follow")
    stage = .running
    readsBefore = connection.reads
    var name = exchange.request.method
    method = name.withUTF8 { MessageHead.Method(UnsafeRawBufferPointer($0)) }
    send(exchange.request, of: exchange)
    id = try? context?.channel.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID)
  }

  func setReading(_ reads: Bool) {
    guard isReading != reads, let context else { return }
    isReading = reads
    context.setReading(reads)
  }

  func timedOut() { connection.timedOut(since: readsBefore) }

  func release() {
    invariant(stage.isOpening && id == nil, "a stream is given back unused that the backend knows")
    stage = .over
    context?.close(promise: nil)
    releaseSlot()
  }

  /// Resets the stream, without affecting the others of its connection. The reset follows the bytes of the stream that
  /// the kernel holds already. Where the request was sent and has no record, the response first gets the time to end.
  func cut(discardsUnsent: Bool) {
    guard !discardsUnsent, exchange.isSent, context != nil else {
      stage = .over
      return close()
    }
    let timers = connection.pool.upstream.context.timers
    let timer = timers.start(milliseconds: Self.maxDrained.time) { [weak self] in self?.endDraining() }
    stage = .draining(left: Self.maxDrained.bytes, timer)
    setReading(true)
  }
}

import Idempotency
import NIOCore
import NIOHTTP2
import Platform
import Wire

/// One HTTP/2 connection to a backend, whose streams are one exchange each.
///
/// `BackendSessionMachine` decides, this handler acts. Confined to its loop, hence `@unchecked Sendable`.
final class HTTP2Connection: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = HTTP2Frame
  typealias OutboundOut = HTTP2Frame

  /// The pause before another look at a connection whose output buffer was not empty, in milliseconds.
  private static let clearCheckPause: Int64 = 10

  let pool: ConnectionPool
  /// Whether the connection is for requests of protected routes; else it is for all others. A backend that ends one
  /// because of what a stranger's requests did to it must not lose the responses to claimed ones.
  var isProtected = false
  private let socket: BackendSocket
  private var multiplexer: NIOHTTP2Handler.StreamMultiplexer?
  private var context: ChannelHandlerContext?
  private var machine = BackendSessionMachine()
  private var liveness = Liveness()
  /// The number of reads.
  private(set) var reads = 0
  /// The number of frames that belonged to a stream.
  private var responses = 0
  /// The timer that runs while an exchange wants the connection and its output buffer is not empty.
  private var clearCheck: LoopTimers.Token?
  private(set) var restsUntil = NIODeadline.now()
  private let ready = OneShot()
  private(set) var error: (any Error)?

  private init(of pool: ConnectionPool, _ socket: BackendSocket) {
    self.pool = pool
    self.socket = socket
    socket.didReadEncrypted { [weak self] in self?.wasRead() }
  }

  /// Adds the HTTP/2 handlers to the end of a channel's pipeline.
  static func start(on channel: any Channel, of pool: ConnectionPool, _ socket: BackendSocket) throws {
    let connection = HTTP2Connection(of: pool, socket)
    let codec = NIOHTTP2Handler(
      mode: .client, eventLoop: channel.eventLoop, connectionConfiguration: connectionConfiguration,
      streamConfiguration: streamConfiguration
    ) { pushed in
      // Never announced, because server push is disabled.
      pushed.close()
    }
    try channel.pipeline.syncOperations.addHandlers([BackendFrameIntake(), codec, connection])
    connection.multiplexer = try codec.syncMultiplexer()
  }

  /// Returns a future that succeeds with the backend's first SETTINGS frame. No request is sent to a backend that does
  /// not speak HTTP/2.
  func whenReady(on loop: any EventLoop) -> EventLoopFuture<Void> { ready.wait(on: loop) }

  func handlerAdded(context: ChannelHandlerContext) {
    pool.upstream.context.loop.assertInEventLoop()
    self.context = context
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data).payload {
    case .settings(.settings(let settings)):
      machine.adopt(settings)
      if ready.isSet { pool.hasRoom(self) } else { settled() }
    case .windowUpdate(let increment):
      machine.windowGrew(by: increment)
      pool.hasRoom(self)
    case .goAway(let last, let code, _):
      machine.didReceiveGoAway(last: last, isError: code != .noError)
      leave()
    default: break
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    reads &+= 1
    wasRead()
    pool.upstream.context.executor.drain()
  }

  private func wasRead() {
    guard machine.didRead() || liveness.isPinging else { return }
    liveness.heard()
    pool.hasRoom(self)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) { pool.upstream.context.executor.drain() }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // The error of a single stream, which was reset. The other streams continue.
    if error is NIOHTTP2Errors.StreamError { return }
    // The backend's error on a single stream, unless the codec has thrown the same for the connection, which the PING
    // then shows. The responses of the other streams still count.
    if error.mayConcernOneHTTP2Stream {
      leave()
      return probe()
    }
    // A frame of a stream that does not exist. NIO may have sent GOAWAY because of it.
    if error is NIOHTTP2Errors.NoSuchStream {
      if isOpen, machine.isServing { pool.upstream.didEndForStrayBytes(of: pool.settings.name) }
      return leave()
    }
    if self.error == nil {
      self.error = !ready.isSet && error is any NIOHTTP2Error ? OtherProtocol() : error
    }
    close()
  }

  func channelInactive(context: ChannelHandlerContext) { connectionEnded() }

  /// Handles the end of a connection that was cut as soon as it was made, and so does not become inactive.
  func handlerRemoved(context: ChannelHandlerContext) { connectionEnded() }

  private func connectionEnded() {
    guard context != nil else { return }
    context = nil
    ready.set(.failure(error ?? ChannelError.eof))
    pool.closed(self)
    pool.upstream.context.executor.drain()
  }

  private func settled() {
    rest()
    ready.set(machine.maxStreams > 0 ? .success(()) : .failure(TakesNothing()))
  }

  /// The bytes before the backend's settings are none of HTTP/2.
  private struct OtherProtocol: Error, CustomStringConvertible {
    var description: String {
      "the backend does not speak HTTP/2: it begins with bytes of another protocol; write http2: off for HTTP/1.1"
    }
  }

  private struct TakesNothing: Error, CustomStringConvertible {
    var description: String { "the backend takes no requests" }
  }
}

// The pool's view of the connection.
extension HTTP2Connection: PooledConnection {
  var generation: Int? { socket.generation }

  var isOpen: Bool { context?.channel.isActive == true }

  var isResting: Bool { machine.isResting }

  /// Whether one more exchange may be opened. If the output buffer is not empty, the pool is notified later.
  private var hasRoom: Bool {
    guard isOpen, machine.hasRoom, !liveness.isPinging, !pool.isOutdated(self) else { return false }
    guard !isResting || !hasAged(.now()) else { return false }
    if isClear { return true }
    scheduleClearCheck()
    return false
  }

  func hasRoom(for exchange: HTTPExchange) -> Bool {
    pool.upstream.context.loop.assertInEventLoop()
    guard exchange.request.isProtected == isProtected else { return false }
    if takesBody(of: exchange) { return hasRoom }
    if machine.isExhausted { leave() }
    return false
  }

  /// Whether the backend accepts heads of this size. NIO's servers and others end the connection for a larger one.
  func takesHead(of exchange: HTTPExchange) -> Bool {
    machine.maxHeadSize.map { exchange.request.hasHead(within: $0) } ?? true
  }

  /// Whether the body of a claimed request, if it has one, can begin to leave. Its head must not be sent where the body
  /// cannot follow: the outcome would be unknown although the backend cannot have begun.
  func takesBody(of exchange: HTTPExchange) -> Bool {
    machine.hasWindow || !exchange.needsWindow
  }

  /// Whether an exchange should wait for this connection, since another one to the same backend would hardly take it
  /// sooner.
  func holdsBack(_ exchange: HTTPExchange) -> Bool {
    exchange.request.isProtected == isProtected
      && machine.holdsBack(needsWindow: exchange.needsWindow && isOpen)
  }

  /// Reserves the connection for the one exchange that it was made for.
  func reserve() { machine.reserve() }

  /// Whether bytes that are written now leave at once. A request's head must not wait here while its permit grows
  /// stale: if the process is frozen and resumed, the head would leave long after another node has sent the request.
  private var isClear: Bool {
    (try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)) == 0
  }

  private func scheduleClearCheck() {
    guard clearCheck == nil else { return }
    clearCheck = pool.upstream.context.timers.start(milliseconds: Self.clearCheckPause) { [weak self] in
      guard let self, isOpen else { return }
      clearCheck = nil
      pool.hasRoom(self)
    }
  }

  /// Starts the idle time of a connection without streams.
  private func rest() { restsUntil = .now() + .milliseconds(pool.settings.idleTimeout.count) }

  func close() {
    pool.upstream.context.loop.assertInEventLoop()
    machine.leave()
    context?.close(promise: nil)
  }

  /// Opens a stream for an exchange. NIO creates it in the loop's next turn.
  func open(_ exchange: HTTPExchange) {
    pool.upstream.context.loop.assertInEventLoop()
    invariant(
      exchange.request.isProtected == isProtected, "a protected request shares its connection with others")
    machine.open()
    if liveness.streamOpened() { tick() }
    exchange.connect()
    let stream = HTTP2Stream(of: self, for: exchange)
    guard let multiplexer, let context else { return stream.opened() }
    let made = context.eventLoop.makePromise(of: (any Channel).self)
    made.futureResult.whenComplete { _ in
      stream.opened()
      self.pool.upstream.context.executor.drain()
    }
    multiplexer.createStreamChannel(promise: made) { channel in
      channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(stream) }
    }
  }
}

// The streams' view of the connection.
extension HTTP2Connection {
  /// Whether a request may be sent now. If the backend has closed the connection, it takes no more streams.
  func takes(_ exchange: HTTPExchange) -> Bool {
    pool.upstream.context.loop.assertInEventLoop()
    guard isOpen, machine.mayBegin, takesBody(of: exchange) else { return false }
    switch socket.readState {
    case .quiet: return isClear
    case .unread: return machine.mayBeginBesideUnread() && isClear
    case .ended:
      leave()
      return false
    }
  }

  /// Whether the backend has stated that it did not process this stream.
  func disowns(_ stream: HTTP2StreamID) -> Bool { machine.disowns(stream) }

  /// Counts body bytes that are passed to NIO.
  func willSend(_ count: Int) { machine.willSend(count) }

  /// Notes that the backend has begun to respond on a stream.
  func didRespond(on stream: HTTP2StreamID) { machine.didRespond(on: stream) }

  /// Counts a frame that belongs to a stream.
  func didReceiveResponse() { responses &+= 1 }

  /// Takes no more streams, because the connection has become one client's own.
  func bind() { leave() }

  /// Handles the time-out of a stream. If nothing was read from the connection since the stream began, it takes no more
  /// streams; otherwise a PING is sent.
  ///
  /// - Parameter reads: The number of reads when the stream began.
  func timedOut(since reads: Int) {
    pool.upstream.context.loop.assertInEventLoop()
    invariant(reads <= self.reads, "a stream began after a read that has not come")
    if reads == self.reads { return leave() }
    probe()
  }

  /// Counts a stream that is being reset. After some, the connection takes no more streams.
  func willReset() {
    if machine.willReset() { leave() }
  }

  /// Handles the end of a stream.
  func ended() {
    pool.upstream.context.loop.assertInEventLoop()
    let action = machine.ended()
    if isResting { rest() }
    switch action {
    case .offer: pool.hasRoom(self)
    case .close: close()
    case .none: break
    }
  }

  /// Takes no more streams. The connection closes when its last one ends.
  func leave() {
    pool.upstream.context.loop.assertInEventLoop()
    guard machine.leave() else { return }
    pool.left(self)
    if machine.isOver { close() }
  }

  private func tick() {
    pool.upstream.context.loop.scheduleTask(in: .seconds(1)) { [weak self] in
      guard let self, isOpen else { return }
      switch liveness.ticked(reads: reads, responses: responses, hasStreams: !isResting) {
      case .none: break
      case .rest: return
      case .ping: ping()
      case .giveUp:
        error = error ?? Silence()
        machine.leave()
        if let context { socket.cut(context, discardsUnsent: true) }
        return
      }
      tick()
    }
  }

  /// Sends a PING now. Without any read within its time the connection is closed.
  private func probe() {
    guard isOpen, !liveness.isPinging else { return }
    liveness.willPing(reads: reads)
    ping()
  }

  private func ping() {
    let frame = HTTP2Frame(streamID: .rootStream, payload: .ping(HTTP2PingData(withInteger: 0), ack: false))
    context?.writeAndFlush(wrapOutboundOut(frame), promise: nil)
  }

  private struct Silence: Error, CustomStringConvertible {
    var description: String { "the backend sends nothing any more" }
  }
}

// The settings for backends. Their limits are higher than those for clients, because backends are trusted more.
extension HTTP2Connection {
  /// The window of a stream: the bytes that may arrive ahead of its reader.
  static let streamWindow = 256 << 10
  /// The window of the connection. It opens again as bytes arrive, not as they are read, so that a slow reader does not
  /// delay other streams.
  private static let connectionWindow = 4 << 20
  /// The period over which useless frames are counted. It is so short that no backend can send as many as are allowed.
  private static let window = TimeAmount.milliseconds(10)
  private static let manyFrames = 2000

  private static var connectionConfiguration: NIOHTTP2Handler.ConnectionConfiguration {
    var connection = NIOHTTP2Handler.ConnectionConfiguration()
    connection.initialSettings = [
      HTTP2Setting(parameter: .enablePush, value: 0),
      HTTP2Setting(parameter: .maxHeaderListSize, value: HeadLimits.backend.headBytes),
      HTTP2Setting(parameter: .initialWindowSize, value: streamWindow),
    ]
    // The response head's parser and the stream check these rules.
    connection.headerBlockValidation = .disabled
    connection.contentLengthValidation = .disabled
    // As many frames of 16 KiB as the largest head takes.
    connection.maximumSequentialContinuationFrames = HeadLimits.backend.headBytes >> 14 + 1
    connection.maximumSequentialEmptyDataFrames = .max
    connection.maximumConnectionGlitches = .max
    // Frames that were in flight when their streams were reset are not the backend's fault.
    connection.maximumRecentlyResetStreams = 4096
    connection.controlFrameRateLimit.maximumCount = manyFrames
    connection.controlFrameRateLimit.windowLength = window
    connection.targetWindowSize = connectionWindow
    return connection
  }

  private static var streamConfiguration: NIOHTTP2Handler.StreamConfiguration {
    var stream = NIOHTTP2Handler.StreamConfiguration()
    stream.targetWindowSize = streamWindow
    // As for an HTTP/1.1 connection.
    stream.outboundBufferSizeHighWatermark = 64 << 10
    stream.outboundBufferSizeLowWatermark = 32 << 10
    stream.streamResetFrameRateLimit.maximumCount = manyFrames
    stream.streamResetFrameRateLimit.windowLength = window
    stream.streamErrorRateLimit.maximumCount = manyFrames
    stream.streamErrorRateLimit.windowLength = window
    return stream
  }
}

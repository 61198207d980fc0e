import Idempotency
import Loop
import NIOCore
import NIOHTTP2

/// One connection of HTTP/2 to a backend: its streams are exchanges, and this is what they share. Confined to its loop.
final class HTTP2Connection: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = HTTP2Frame
  typealias OutboundOut = HTTP2Frame

  /// What a backend allows that does not say: NIO holds further streams back itself.
  private static let usualStreams = 100
  /// Stream identifiers end at 2^31, and each stream takes the next odd one.
  private static let lastOpened = 1 << 29
  /// What a stream's and a connection's windows are until the backend says otherwise (RFC 9113, section 6.9.2).
  private static let usualWindow = 65_535
  /// How soon a connection that was full of what is yet to leave is looked at again, in milliseconds.
  private static let glance: Int64 = 10

  let pool: ConnectionPool
  private let socket: BackendSocket
  private var multiplexer: NIOHTTP2Handler.StreamMultiplexer?
  private var context: ChannelHandlerContext?
  /// How many streams the backend takes at once.
  private var mostStreams = usualStreams
  /// Streams that are open, or about to be.
  private var streams = 0
  private var opened = 0
  /// Whether an exchange has ended on it.
  private(set) var wasUsed = false
  /// Whether it takes no more streams.
  private var isLeaving = false
  /// Whether it was made for one exchange alone.
  private var isReserved = false
  /// Whether bytes have come that are to be read before another stream is opened.
  private(set) var isUnread = false
  private var liveness = Liveness()
  private var isTicking = false
  /// The number of reads.
  private(set) var reads = 0
  /// The number of reads that brought something of a stream.
  private var answers = 0
  /// The bytes of a body that a new stream may send.
  private var streamWindow = usualWindow
  /// The bytes that all streams together may send. No less is open: what NIO was given counts as sent.
  private var connectionWindow = usualWindow
  /// Runs while somebody would use it once it is clear.
  private var glance: LoopTimers.Token?
  /// The last stream that the backend may have taken, once it has said so in order.
  private var lastTaken: HTTP2StreamID?
  /// Whether the backend left for an error: what it says of the last stream proves nothing then.
  private var leftForError = false
  private var restsSince = NIODeadline.now()
  private let ready = LateResult()
  private(set) var error: (any Error)?

  private init(of pool: ConnectionPool, _ socket: BackendSocket) {
    self.pool = pool
    self.socket = socket
    socket.onEncryptedRead { [weak self] in self?.wasRead() }
  }

  /// Adds all that speaks HTTP/2 to the end of a channel's pipeline.
  static func start(on channel: any Channel, of pool: ConnectionPool, _ socket: BackendSocket) throws {
    let connection = HTTP2Connection(of: pool, socket)
    let codec = NIOHTTP2Handler(
      mode: .client, eventLoop: channel.eventLoop, connectionConfiguration: connectionConfiguration,
      streamConfiguration: streamConfiguration
    ) { pushed in
      // Never promised: pushing is switched off.
      pushed.close()
    }
    try channel.pipeline.syncOperations.addHandlers([codec, connection])
    connection.multiplexer = try codec.syncMultiplexer()
  }

  /// Succeeds once the backend has said how it speaks HTTP/2, with its first frame: a request never goes to one that
  /// does not.
  func whenReady(on loop: any EventLoop) -> EventLoopFuture<Void> { ready.wait(on: loop) }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data).payload {
    case .settings(.settings(let settings)):
      for setting in settings {
        if setting.parameter == .maxConcurrentStreams { mostStreams = setting.value }
        if setting.parameter == .initialWindowSize { streamWindow = setting.value }
      }
      if ready.isSet { pool.hasRoom(self) } else { settled() }
    case .windowUpdate(let increment):
      connectionWindow += increment
      pool.hasRoom(self)
    case .goAway(let last, .noError, _):
      lastTaken = min(last, lastTaken ?? last)
      leave()
    case .goAway:
      leftForError = true
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
    guard isUnread || liveness.isAsking else { return }
    isUnread = false
    liveness.heard()
    pool.hasRoom(self)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) { pool.upstream.context.executor.drain() }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // Of a stream alone: it has been reset, and the others are not to blame.
    if error is NIOHTTP2Errors.StreamError { return }
    // A frame of a stream that there is not. NIO may have said that it leaves for it.
    if error is NIOHTTP2Errors.NoSuchStream { return leave() }
    if self.error == nil { self.error = error }
    close()
  }

  func channelInactive(context: ChannelHandlerContext) {
    self.context = nil
    ready.set(.failure(error ?? ChannelError.eof))
    pool.closed(self)
    pool.upstream.context.executor.drain()
  }

  private func settled() {
    restsSince = .now()
    ready.set(mostStreams > 0 ? .success(()) : .failure(TakesNothing()))
  }

  private struct TakesNothing: Error, CustomStringConvertible {
    var description: String { "the backend takes no requests" }
  }
}

// What the pool asks.
extension HTTP2Connection: PooledConnection {
  var isOpen: Bool { context?.channel.isActive == true }

  var isResting: Bool { streams == 0 }

  /// Whether one more exchange may be opened on it. One that is not clear tells the pool when it may be.
  private var hasRoom: Bool {
    guard isOpen, !isLeaving, streams < mostStreams, opened < Self.lastOpened else { return false }
    guard !isUnread, !liveness.isAsking else { return false }
    guard !isResting || !hasAged(.now()) else { return false }
    if isClear { return true }
    lookAgain()
    return false
  }

  func hasRoom(for exchange: HTTPExchange) -> Bool {
    if takesBody(of: exchange) { return hasRoom }
    // What was given to NIO and never left counts as sent for ever: such a connection has done its work.
    if isResting, connectionWindow <= 0 { leave() }
    return false
  }

  /// Whether the body of a claimed request, if it has one, could begin to leave. Its head must not go where the body
  /// cannot follow: the outcome would be unknown although the backend cannot have begun.
  func takesBody(of exchange: HTTPExchange) -> Bool {
    streamWindow > 0 && connectionWindow > 0 || !exchange.needsWindow
  }

  /// Whether another connection to the same backend would hardly take more than this one.
  func holdsBack(_ exchange: HTTPExchange) -> Bool {
    isUnread || exchange.needsWindow && isOpen && !isLeaving && streamWindow <= 0
  }

  /// Keeps it for the one exchange that it was made for.
  func reserve() {
    isReserved = true
    isLeaving = true
  }

  /// Whether what is written now leaves at once. A request's head must not lie here while its permit grows stale: it
  /// would leave when the process has been frozen and wakes up, long after somebody else has sent the request.
  private var isClear: Bool {
    (try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)) == 0
  }

  private func lookAgain() {
    guard glance == nil else { return }
    glance = pool.upstream.context.timers.start(milliseconds: Self.glance) { [weak self] in
      guard let self, isOpen else { return }
      glance = nil
      pool.hasRoom(self)
    }
  }

  func timeLeft(_ now: NIODeadline) -> Milliseconds {
    pool.settings.idleTimeout - Milliseconds((now - restsSince).nanoseconds / 1_000_000)
  }

  func close() {
    isLeaving = true
    context?.close(promise: nil)
  }

  /// Lets an exchange run on a stream of its own. NIO makes that in the loop's next turn.
  func open(_ exchange: HTTPExchange) {
    streams += 1
    opened += 1
    if !isTicking { tick() }
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

// What its streams ask and tell.
extension HTTP2Connection {
  /// Whether a request may be sent on it now. One whose backend has gone is left.
  func takes(_ exchange: HTTPExchange) -> Bool {
    // The backend may have lowered its limits just now: NIO would hold the head back.
    guard isOpen, !isLeaving || isReserved, streams <= mostStreams else { return false }
    guard takesBody(of: exchange) else { return false }
    switch socket.standing {
    case .quiet: return isClear
    case .unread:
      // While nothing is under way the backend has little to say. Whatever it is, it was not said to this request.
      isUnread = streams == 1
      return !isUnread && isClear
    case .ended:
      leave()
      return false
    }
  }

  /// Whether the backend has said that it took nothing of this stream (RFC 9113, section 6.8). One that leaves for an
  /// error may count as it likes: some say 0 although streams ran.
  func disowns(_ stream: HTTP2StreamID) -> Bool { !leftForError && (lastTaken.map { stream > $0 } ?? false) }

  /// So much of a body was given to NIO.
  func willSend(_ count: Int) { connectionWindow -= count }

  /// Something of a stream has come.
  func wasAnswered() { answers &+= 1 }

  /// No other client's request may follow on it.
  func bind() { leave() }

  /// A stream has waited for too long. Where nothing at all was heard meanwhile, the connection is left; else the
  /// backend is asked.
  ///
  /// - Parameter reads: how often anything was read when the stream began.
  func timedOut(since reads: Int) {
    if reads == self.reads { return leave() }
    guard isOpen, !liveness.isAsking else { return }
    liveness.ask(reads: self.reads)
    ping()
  }

  /// A stream has ended.
  ///
  /// - Parameter wasUsed: whether it carried an exchange.
  func ended(wasUsed: Bool) {
    streams -= 1
    if wasUsed { self.wasUsed = true }
    if streams == 0 { restsSince = .now() }
    if isLeaving { return closeIfOver() }
    pool.hasRoom(self)
  }

  private func leave() {
    guard !isLeaving else { return }
    isLeaving = true
    pool.left(self)
    closeIfOver()
  }

  private func tick() {
    isTicking = true
    pool.upstream.context.loop.scheduleTask(in: .seconds(1)) { [weak self] in
      guard let self, isOpen else { return }
      switch liveness.ticked(reads: reads, answers: answers, hasStreams: !isResting) {
      case .none: break
      case .rest:
        isTicking = false
        return
      case .ask: ping()
      case .giveUp:
        error = error ?? Silence()
        isLeaving = true
        if let context { socket.cut(context) }
        return
      }
      tick()
    }
  }

  private func ping() {
    let frame = HTTP2Frame(streamID: .rootStream, payload: .ping(HTTP2PingData(withInteger: 0), ack: false))
    context?.writeAndFlush(wrapOutboundOut(frame), promise: nil)
  }

  private struct Silence: Error, CustomStringConvertible {
    var description: String { "the backend says nothing any more" }
  }

  private func closeIfOver() {
    if isLeaving, isResting { close() }
  }
}

// What is said to backends, and what is borne from them: they are trusted with more than strangers are.
extension HTTP2Connection {
  /// What of a head is taken, as for HTTP/1.1.
  private static let headBytes = 256 << 10
  /// What of a stream may come before it is read.
  private static let streamWindow = 256 << 10
  /// What of all streams may be under way. Whoever is read slowly holds up nobody else: this window opens again as
  /// bytes come, not as they are read.
  private static let connectionWindow = 4 << 20
  /// Frames of no use are counted for so short a time that no backend sends as many as are counted.
  private static let window = TimeAmount.milliseconds(10)
  private static let manyFrames = 2000

  private static var connectionConfiguration: NIOHTTP2Handler.ConnectionConfiguration {
    var connection = NIOHTTP2Handler.ConnectionConfiguration()
    connection.initialSettings = [
      HTTP2Setting(parameter: .enablePush, value: 0),
      HTTP2Setting(parameter: .maxHeaderListSize, value: headBytes),
      HTTP2Setting(parameter: .initialWindowSize, value: streamWindow),
    ]
    // Held to the rules by what makes an answer's head, and by the stream.
    connection.headerBlockValidation = .disabled
    connection.contentLengthValidation = .disabled
    // As many frames of 16 KiB as the largest head takes.
    connection.maximumSequentialContinuationFrames = headBytes >> 14 + 1
    connection.maximumSequentialEmptyDataFrames = .max
    connection.maximumConnectionGlitches = .max
    // Frames that were under way when their streams were reset are no fault of the backend's.
    connection.maximumRecentlyResetStreams = 4096
    connection.controlFrameRateLimit.maximumCount = manyFrames
    connection.controlFrameRateLimit.windowLength = window
    connection.targetWindowSize = connectionWindow
    return connection
  }

  private static var streamConfiguration: NIOHTTP2Handler.StreamConfiguration {
    var stream = NIOHTTP2Handler.StreamConfiguration()
    stream.targetWindowSize = streamWindow
    // As for a connection of HTTP/1.1.
    stream.outboundBufferSizeHighWatermark = 64 << 10
    stream.outboundBufferSizeLowWatermark = 32 << 10
    stream.streamResetFrameRateLimit.maximumCount = manyFrames
    stream.streamResetFrameRateLimit.windowLength = window
    stream.streamErrorRateLimit.maximumCount = manyFrames
    stream.streamErrorRateLimit.windowLength = window
    return stream
  }
}

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
  /// How soon a connection that was full of what is yet to leave is looked at again, in milliseconds.
  private static let glance: Int64 = 10

  let pool: NativePool
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
  /// Runs while somebody would use it once it is clear.
  private var glance: LoopTimers.Token?
  /// The last stream that the backend may have taken, once it has said so.
  private var lastTaken: HTTP2StreamID?
  private var restsSince = NIODeadline.now()
  private let ready = LateResult()
  private(set) var error: (any Error)?

  private init(of pool: NativePool, _ socket: BackendSocket) {
    self.pool = pool
    self.socket = socket
  }

  /// Adds all that speaks HTTP/2 to the end of a channel's pipeline.
  static func start(on channel: any Channel, of pool: NativePool, _ socket: BackendSocket) throws {
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
      for setting in settings where setting.parameter == .maxConcurrentStreams { mostStreams = setting.value }
      if ready.isSet { pool.hasRoom(self) } else { settled() }
    case .goAway(let last, _, _):
      lastTaken = min(last, lastTaken ?? last)
      leave()
    default: break
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) { pool.upstream.context.executor.drain() }

  func channelWritabilityChanged(context: ChannelHandlerContext) { pool.upstream.context.executor.drain() }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // Of a stream alone: it has been reset, and the others are not to blame.
    if error is NIOHTTP2Errors.StreamError || error is NIOHTTP2Errors.NoSuchStream { return }
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
  var hasRoom: Bool {
    guard isOpen, !isLeaving, streams < mostStreams, opened < Self.lastOpened else { return false }
    guard !isResting || !hasAged(.now()) else { return false }
    if isClear { return true }
    lookAgain()
    return false
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
  func open(_ exchange: NativeExchange) {
    streams += 1
    opened += 1
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
  func takesRequest() -> Bool {
    // The backend may have lowered its limit just now: NIO would hold the head back.
    guard isOpen, !isLeaving, streams <= mostStreams else { return false }
    if socket.isOpen { return isClear }
    leave()
    return false
  }

  /// Whether the backend has said that it took nothing of this stream (RFC 9113, section 6.8).
  func disowns(_ stream: HTTP2StreamID) -> Bool { lastTaken.map { stream > $0 } ?? false }

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

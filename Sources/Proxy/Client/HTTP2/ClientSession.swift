import Idempotency
import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOSSL
import Platform
import Telemetry
import Wire

/// A client's HTTP/2 connection: the state that its streams share, and its end. Confined to its event loop, hence
/// `@unchecked Sendable`.
final class ClientSession: ChannelInboundHandler, DownstreamConnection, @unchecked Sendable {
  typealias InboundIn = HTTP2Frame
  typealias OutboundOut = HTTP2Frame

  /// The time that a client has to confirm the announcement of the end, in milliseconds: a round trip and more.
  private static var confirmation: Int64 { 1000 }

  let downstream: Downstream
  let peer: ClientPeer
  let memory: ConnectionMemory
  private var drainState: HTTP2Drain
  /// The streams that may still be refused before the connection ends for a flood.
  private var refusals: Allowance
  /// Whether the codec has sent a GOAWAY with an error, which ends the connection.
  private var hasFailed = false
  /// The open streams. The codec does not pass the end of the client's input on to them.
  private var streams = Roster<ClientStream>()
  /// The memory for a frame or a block of fields that is not whole.
  private var unfinished = 0
  /// Whether flushes wait for the end of a read.
  var holdsFlushes = false
  /// The streams whose responses have been written within a read, and may wait for the client after it.
  private var written: [ClientStream] = []
  /// The time since which no stream is open.
  private var restingAt = NIODeadline.now()
  /// The streams that are not read, while the codec keeps their frames.
  private var heldBack: [UInt32: ClientStream] = [:]
  /// The bytes of heads and trailers that the streams have taken, and that are not charged yet.
  private var decodedBytes = 0
  private var context: ChannelHandlerContext?
  /// Its number among its loop's connections.
  private var number = 0
  /// The time at which an idle connection ends.
  private var deadline: NIODeadline
  private var timer: LoopTimers.Token?

  init(downstream: Downstream, peer: ClientPeer) {
    self.downstream = downstream
    self.peer = peer
    memory = ConnectionMemory(on: downstream, from: peer)
    drainState = HTTP2Drain(maxStreams: downstream.limits.http2MaxStreams)
    refusals = Allowance(
      ConnectionLimits.http2Resets, initial: downstream.limits.http2MaxUninformedStreams)
    deadline = .now() + .milliseconds(downstream.limits.headerTimeout.count)
  }

  /// Adds the handlers of HTTP/2 to the end of a connection's pipeline.
  static func start(on channel: any Channel, downstream: Downstream, peer: ClientPeer) throws {
    let session = ClientSession(downstream: downstream, peer: ClientPeer(overHTTP2: peer))
    let (connection, stream) = (downstream.limits.http2Connection, downstream.limits.http2Stream)
    let codec = NIOHTTP2Handler(
      mode: .server, eventLoop: channel.eventLoop, connectionConfiguration: connection,
      streamConfiguration: stream
    ) { stream in
      stream.eventLoop.makeCompletedFuture {
        try stream.pipeline.syncOperations.addHandler(ClientStream(of: session))
      }
    }
    try channel.pipeline.syncOperations.addHandlers([
      FlushGate(of: session), FrameGuard(of: session, maxControlFrames: ConnectionLimits.http2ControlFrames),
      codec, session,
    ])
  }

  func handlerAdded(context: ChannelHandlerContext) {
    downstream.context.loop.assertInEventLoop()
    self.context = context
    number = downstream.connections.enter(self)
    let settings = HTTP2Frame(
      streamID: .rootStream, payload: .settings(.settings(downstream.limits.http2Settings)))
    context.writeAndFlush(wrapOutboundOut(settings), promise: nil)
    startTimer()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .ping(_, ack: true) = unwrapInboundIn(data).payload { act(drainState.confirmed()) }
  }

  func channelReadComplete(context: ChannelHandlerContext) { downstream.context.executor.drain() }

  func channelWritabilityChanged(context: ChannelHandlerContext) { downstream.context.executor.drain() }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    // The client sends nothing more; its complete requests still get their responses.
    if case ChannelEvent.inputClosed? = event as? ChannelEvent {
      act(drainState.begin())
      act(drainState.confirmed())
      for stream in Array(streams.values) { stream.inputClosed() }
    }
    context.fireUserInboundEventTriggered(event)
    downstream.context.executor.drain()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if !hasFailed {
      // A write to a stream that is gone.
      if error is NIOHTTP2Errors.StreamError || error is NIOHTTP2Errors.NoSuchStream { return }
      // The codec has reset the stream. The others continue.
      if error.mayConcernOneHTTP2Stream { return downstream.environment.counters.add(.framingErrors) }
    }
    if error is NIOSSLError { return context.close(promise: nil) }
    misbehaved()
  }

  func channelInactive(context: ChannelHandlerContext) { connectionEnded() }

  /// Handles the end of a connection that became inactive while this handler was being added.
  func handlerRemoved(context: ChannelHandlerContext) { connectionEnded() }

  private func connectionEnded() {
    guard context != nil else { return }
    context = nil
    if let timer { downstream.context.timers.stop(timer) }
    timer = nil
    countUnfinished(0)
    written = []
    downstream.connections.leave(number)
    downstream.context.executor.drain()
  }

  func drain() { act(drainState.begin()) }

  var restingSince: NIODeadline? { drainState.streams == 0 && !hasUnread ? restingAt : nil }

  var client: MemoryHolder? { memory.client }

  func closeResting() -> Bool {
    act(drainState.begin())
    act(drainState.confirmed())
    return true
  }

  var hasUnread: Bool {
    let unwritten = try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)
    return (unwritten ?? 0) > 0 || streams.values.contains { $0.hasUnread }
  }

  var deliveries: [Delivery] { streams.values.compactMap(\.delivery) }
}

// The streams.
extension ClientSession {
  /// Adds a stream. False if it must be refused.
  func opened(_ stream: ClientStream, _ id: HTTP2StreamID) -> Bool {
    stream.number = streams.enter(stream)
    return drainState.opened(Int(id))
  }

  func ended(_ stream: ClientStream) {
    streams.leave(stream.number)
    act(drainState.ended())
    restingAt = .now()
    deadline = restingAt + .milliseconds(downstream.limits.idleTimeout.count)
  }

  /// Notes that a stream's response has not left. What is written within a read leaves at its end.
  func noteUnread(_ stream: ClientStream) {
    if holdsFlushes { written.append(stream) } else { stream.countUnread() }
  }

  /// Counts the responses that have not left with the flush.
  func countUnread() {
    guard !written.isEmpty else { return }
    let streams = written
    written.removeAll(keepingCapacity: streams.count <= downstream.limits.http2MaxStreams)
    for stream in streams { stream.countUnread() }
  }

  /// Counts the bytes of a frame or a block of fields that is not whole; false if there is no memory for them.
  @discardableResult
  func countUnfinished(_ count: Int) -> Bool { memory.countWaiting(count, insteadOf: &unfinished) }

  /// Whether a stream is not read.
  var holdsBack: Bool { !heldBack.isEmpty }

  func holdBack(_ stream: ClientStream, _ id: HTTP2StreamID) { heldBack[UInt32(Int(id))] = stream }

  func readsAgain(_ id: HTTP2StreamID) { heldBack[UInt32(Int(id))] = nil }

  /// Counts a frame of DATA, or a part of one, that is about to reach the codec.
  func receivedData(on stream: UInt32) { heldBack[stream]?.holdFrame() }

  /// Counts the fields that a stream has taken, by their size in RFC 9113, section 6.5.2.
  func didTake(_ fields: HPACKHeaders) { decodedBytes += fields.byteCount + 32 * fields.count }

  /// Returns the bytes of all fields that were taken since the last call.
  func takeDecodedBytes() -> Int {
    defer { decodedBytes = 0 }
    return decodedBytes
  }

  /// The last stream for GOAWAY: the highest one that was taken; 0 if none was.
  var lastStream: Int { drainState.last }

  /// Acquires a slot for one more delivery; false if the client has as many under way as it may.
  func acquireSlot() -> Bool { drainState.acquire() }

  func releaseSlot() { drainState.release() }

  /// Handles a stream that was refused. Clients that know how many they may open are refused few; the others cost as
  /// much as requests, and advance none.
  func refused() {
    if refusals.take(.now()) { return }
    context?.triggerUserOutboundEvent(FrameGuard.Flood(), promise: nil)
  }

  /// Notes that the codec has sent a GOAWAY with an error.
  func didFail() { hasFailed = true }

  /// Handles a client that broke the protocol, or floods the connection.
  func misbehaved() {
    downstream.environment.counters.add(.framingErrors)
    context?.close(promise: nil)
  }

  /// Cuts a connection whose client reads nothing at all.
  func cut() { context?.reset() }
}

extension ClientSession {
  private func act(_ action: HTTP2Drain.Action) {
    // Streams also end because the connection is gone.
    guard let context, context.channel.isActive else { return }
    switch action {
    case .nothing: break
    case .announce:
      goAway(Int(HTTP2StreamID.maxID), context, promise: nil)
      let ping = HTTP2Frame(streamID: .rootStream, payload: .ping(HTTP2PingData(), ack: false))
      context.writeAndFlush(wrapOutboundOut(ping), promise: nil)
      _ = downstream.context.timers.start(milliseconds: Self.confirmation) { [weak self] in
        guard let self else { return }
        act(drainState.confirmed())
      }
    case .name(let last):
      goAway(last, context, promise: nil)
    case .close(let last):
      // The channel is closed once the frame has left, because closing drops unsent bytes.
      let written = context.eventLoop.makePromise(of: Void.self)
      let channel = context.channel
      written.futureResult.whenComplete { _ in channel.close(promise: nil) }
      goAway(last, context, promise: written)
      // A client that reads nothing does not take it either.
      _ = downstream.context.timers.start(milliseconds: downstream.limits.writeTimeout.count) { [weak self] in
        self?.cut()
      }
    }
  }

  private func goAway(_ last: Int, _ context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
    context.triggerUserOutboundEvent(FrameGuard.OrderlyEnd(last: last), promise: promise)
  }

  private func startTimer() {
    let left = max(Milliseconds(deadline - .now()).count, 1)
    timer = downstream.context.timers.start(milliseconds: left) { [weak self] in self?.timerFired() }
  }

  /// The deadline moves with each stream that ends, the timer only when it has fired.
  private func timerFired() {
    timer = nil
    if drainState.streams > 0 { deadline = .now() + .milliseconds(downstream.limits.idleTimeout.count) }
    if NIODeadline.now() < deadline { return startTimer() }
    drain()
  }
}

extension LimitSettings {
  /// The largest head, in bytes, that does not end the connection.
  private var maxHead: Int { 2 * headerBytes }

  /// The codec ends the connection above what is announced here, and with it the streams of everybody behind a gateway.
  /// A head between the limit and that gets 431 on its own stream.
  private var maxHeadSetting: HTTP2Setting { HTTP2Setting(parameter: .maxHeaderListSize, value: maxHead) }

  /// The number of streams that a client may open before it knows how many it may: many times what is announced. Those
  /// beyond the announced number are refused one by one. Above this number the codec ends the connection.
  fileprivate var http2MaxUninformedStreams: Int { 1000 + 10 * http2MaxStreams }

  private var codecStreamsSetting: HTTP2Setting {
    HTTP2Setting(parameter: .maxConcurrentStreams, value: http2MaxUninformedStreams)
  }

  /// The SETTINGS with which the server begins. `FrameGuard` announces the number of streams in place of the codec's.
  fileprivate var http2Settings: HTTP2Settings {
    [
      codecStreamsSetting, maxHeadSetting,
      HTTP2Setting(parameter: .initialWindowSize, value: ConnectionLimits.http2WindowBytes),
    ]
  }

  fileprivate var http2Connection: NIOHTTP2Handler.ConnectionConfiguration {
    var connection = NIOHTTP2Handler.ConnectionConfiguration()
    // These are for the codec alone (`FrameGuard`). What clients have to keep to counts once they know it.
    connection.initialSettings = [codecStreamsSetting, maxHeadSetting]
    // `RequestHead` enforces the same rules, with 400 instead of a reset of the stream.
    connection.headerBlockValidation = .disabled
    connection.contentLengthValidation = .disabled
    // As many frames of 16 KiB as the largest head takes.
    connection.maximumSequentialContinuationFrames = maxHead >> 14 + 1
    // Frames that were under way when their streams were reset are no fault of the client's, nor are those of streams
    // that were refused before it knew how many it may open.
    connection.maximumRecentlyResetStreams = http2MaxUninformedStreams
    // One more, for the acknowledgement that `FrameGuard` puts in.
    connection.controlFrameRateLimit.maximumCount = ConnectionLimits.http2ControlFrames + 1
    connection.controlFrameRateLimit.windowLength = Allowance.window
    return connection
  }

  fileprivate var http2Stream: NIOHTTP2Handler.StreamConfiguration {
    var stream = NIOHTTP2Handler.StreamConfiguration()
    stream.targetWindowSize = ConnectionLimits.http2WindowBytes
    // As for a connection of HTTP/1.1.
    stream.outboundBufferSizeHighWatermark = 64 << 10
    stream.outboundBufferSizeLowWatermark = 32 << 10
    stream.streamResetFrameRateLimit.maximumCount = ConnectionLimits.http2Resets
    stream.streamResetFrameRateLimit.windowLength = Allowance.window
    return stream
  }
}

import NIOCore
import NIOHPACK
import NIOHTTP2

/// A connection of a node to the backend over HTTP/2, by NIO's server: each stream is an exchange.
final class HTTP2OriginConnection: ChannelInboundHandler, OriginConnection, @unchecked Sendable {
  typealias InboundIn = HTTP2Frame
  typealias OutboundOut = HTTP2Frame

  let loop: SimLoop
  fileprivate unowned let origin: Origin
  private let end: End
  private let channel: SimChannel
  private var context: ChannelHandlerContext?
  private(set) var isOver = false
  /// The number of the greatest stream that was run, and of the greatest that will be.
  private var greatest = 0
  private var last = Int.max

  init(_ end: End, _ origin: Origin, on loop: SimLoop) {
    self.end = end
    self.origin = origin
    self.loop = loop
    channel = SimChannel(on: loop, end: end)
  }

  /// Begins to speak, on its loop.
  func start() throws {
    let codec = NIOHTTP2Handler(
      mode: .server, eventLoop: loop, connectionConfiguration: .init(),
      streamConfiguration: .init()
    ) { [self] stream in
      stream.eventLoop.makeCompletedFuture {
        try stream.pipeline.syncOperations.addHandler(OriginStream(of: self))
      }
    }
    try channel.pipeline.syncOperations.addHandlers([codec, self])
    channel.activate()
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func channelInactive(context: ChannelHandlerContext) {
    isOver = true
    self.context = nil
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is NIOHTTP2Errors.StreamError { return }
    context.close(promise: nil)
  }

  /// Runs a request that has come whole, unless it came after the announced end.
  fileprivate func take(_ request: HTTPMessage, on stream: OriginStream) {
    guard !isOver, stream.number <= last else { return }
    let before = origin.serial
    origin.take(request, on: stream)
    if origin.serial > before { greatest = max(greatest, stream.number) }
  }

  /// Cuts the connection, on which other responses may be under way.
  fileprivate func cut() {
    guard !isOver else { return }
    isOver = true
    origin.judge.hasCuts = true
    end.reset()
    loop.execute { [self] in channel.close(promise: nil) }
  }

  /// Takes no more after those that have run and this one.
  fileprivate func leave(after stream: OriginStream) { leave(last: max(greatest, stream.number)) }

  /// Takes no more after those that have run, if any has.
  func turnOut() { if !isOver, greatest > 0 { leave(last: greatest) } }

  /// Takes neither this one nor any after it; false if a later one has run.
  fileprivate func turnAway(_ stream: OriginStream) -> Bool {
    guard stream.number > greatest else { return false }
    leave(last: max(0, stream.number - 2))
    return true
  }

  /// Sends GOAWAY past the codec, which would end streams and the connection.
  private func leave(last: Int) {
    self.last = min(self.last, last)
    end.wire.onLeave?(self.last)
    var frame = ByteBuffer(bytes: [0, 0, 8, 7, 0])
    frame.writeInteger(UInt32(0))
    frame.writeInteger(UInt32(self.last))
    frame.writeInteger(UInt32(0))
    loop.execute { [self, frame] in
      guard !isOver else { return }
      let codec = try? channel.pipeline.syncOperations.context(handlerType: NIOHTTP2Handler.self)
      codec?.writeAndFlush(NIOAny(frame), promise: nil)
    }
  }
}

/// One exchange over HTTP/2.
private final class OriginStream: ChannelInboundHandler, OriginExchange, @unchecked Sendable {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  private let connection: HTTP2OriginConnection
  private var request = HTTPMessage(start: "", fields: [:], body: [])
  private var context: ChannelHandlerContext?
  private(set) var number = 0
  private var hasEnded = false

  init(of connection: HTTP2OriginConnection) { self.connection = connection }

  var isOver: Bool { hasEnded || connection.isOver }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func channelInactive(context: ChannelHandlerContext) { end() }

  func handlerRemoved(context: ChannelHandlerContext) { end() }

  private func end() {
    hasEnded = true
    context = nil
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let block):
      let id = try? context.channel.syncOptions?.getOption(HTTP2StreamChannelOptions.streamID)
      number = id.map { Int($0) } ?? 0
      request = HTTPMessage(block.headers)
      if block.endStream { connection.take(request, on: self) }
    case .data(let data):
      if case .byteBuffer(let bytes) = data.data { request.body += bytes.readableBytesView }
      if data.endStream { connection.take(request, on: self) }
    case .rstStream: hasEnded = true
    default: break
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  /// Does something on the loop, unless nobody waits any more.
  private func act(_ act: @escaping (ChannelHandlerContext) -> Void) {
    nonisolated(unsafe) let act = act
    connection.loop.execute { [self] in
      if let context, !isOver { act(context) }
    }
  }

  private func begin(_ response: OriginResponse, _ context: ChannelHandlerContext) {
    var headers = HPACKHeaders([(":status", "\(response.status)")])
    for (name, value) in response.fields { headers.add(name: name.lowercased(), value: value) }
    if !response.isChunked {
      headers.add(name: "content-length", value: "\(response.body.utf8.count)")
    }
    context.write(wrapOutboundOut(.headers(.init(headers: headers))), promise: nil)
  }

  private func write(_ body: some StringProtocol, isLast: Bool, _ context: ChannelHandlerContext) {
    let bytes = ByteBuffer(substring: Substring(body))
    let data = HTTP2Frame.FramePayload.Data(data: .byteBuffer(bytes), endStream: isLast)
    context.writeAndFlush(wrapOutboundOut(.data(data)), promise: nil)
  }

  func respond(_ response: OriginResponse) {
    act { [self] context in
      begin(response, context)
      write(response.body, isLast: true, context)
    }
  }

  /// No second response fits a stream.
  func respondTwice(_ response: OriginResponse, _ stray: OriginResponse) { respond(response) }

  func bidFarewell() {}

  func respondPartly(_ response: OriginResponse, _ luck: Double) {
    respondPartly(response, luck) { [connection] in connection.cut() }
  }

  func resetWithin(_ response: OriginResponse, _ luck: Double) {
    respondPartly(response, luck) { [self] in reset(.internalError) }
  }

  /// Sends the head of a response, and a part of its body that fits every window.
  private func respondPartly(
    _ response: OriginResponse, _ luck: Double, then end: @escaping () -> Void
  ) {
    act { [self] context in
      begin(response, context)
      let count = Int(luck * Double(min(response.body.utf8.count - 1, 4096)))
      write(response.body.prefix(count), isLast: false, context)
    }
    connection.origin.schedule.after(Span(seconds: 0.001 + luck * 0.05), end)
  }

  private func reset(_ code: HTTP2ErrorCode) {
    act { [self] context in
      context.writeAndFlush(wrapOutboundOut(.rstStream(code)), promise: nil)
    }
  }

  func reset() { reset(.internalError) }

  func cut() { connection.cut() }

  func refuse() { reset(.refusedStream) }

  func turnAway() { if !connection.turnAway(self) { refuse() } }

  func leave() { connection.leave(after: self) }
}

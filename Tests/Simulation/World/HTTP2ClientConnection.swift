import NIOCore
import NIOHPACK
import NIOHTTP2

/// A client's connection to a node over HTTP/2, by NIO's client: each request has a stream.
final class HTTP2ClientConnection: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = HTTP2Frame
  typealias OutboundOut = HTTP2Frame

  let loop: SimLoop
  private let end: End
  private let channel: SimChannel
  private var multiplexer: NIOHTTP2Handler.StreamMultiplexer?
  /// Whether no further request may be sent on it.
  private(set) var isOver = false

  init(_ end: End, on loop: SimLoop) {
    self.end = end
    self.loop = loop
    channel = SimChannel(on: loop, end: end)
    loop.execute { [self] in
      do { try start() } catch { preconditionFailure("HTTP2ClientConnection: \(error)") }
    }
  }

  private func start() throws {
    let codec = NIOHTTP2Handler(
      mode: .client, eventLoop: loop, connectionConfiguration: .init(), streamConfiguration: .init()
    ) { $0.close() }
    try channel.pipeline.syncOperations.addHandlers([codec, self])
    multiplexer = try codec.syncMultiplexer()
    channel.activate()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .goAway = unwrapInboundIn(data).payload { isOver = true }
  }

  func channelInactive(context: ChannelHandlerContext) { isOver = true }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is NIOHTTP2Errors.StreamError { return }
    context.close(promise: nil)
  }

  /// Sends a request, and calls back once with the response, or without one.
  func request(
    _ message: HTTPMessage, _ ended: @escaping (HTTPMessage?) -> Void
  ) -> HTTP2ClientStream {
    let stream = HTTP2ClientStream(message, on: self, ended)
    loop.execute { [self] in
      guard let multiplexer, channel.isActive else { return stream.finish(nil) }
      let made = loop.makePromise(of: (any Channel).self)
      made.futureResult.whenFailure { _ in stream.finish(nil) }
      multiplexer.createStreamChannel(promise: made) { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(stream)
        }
      }
    }
    return stream
  }

  /// Goes away without a word to the node's owner.
  func abort() {
    isOver = true
    end.reset()
    loop.execute { [self] in channel.close(promise: nil) }
  }
}

/// One request of a client over HTTP/2.
final class HTTP2ClientStream: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  private let request: HTTPMessage
  let connection: HTTP2ClientConnection
  private var ended: ((HTTPMessage?) -> Void)?
  private var response = HTTPMessage(start: "", fields: [:], body: [])
  private var context: ChannelHandlerContext?

  init(
    _ request: HTTPMessage, on connection: HTTP2ClientConnection,
    _ ended: @escaping (HTTPMessage?) -> Void
  ) {
    self.request = request
    self.connection = connection
    self.ended = ended
  }

  /// Whether its response has not ended.
  var isWaiting: Bool { ended != nil }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func channelActive(context: ChannelHandlerContext) {
    var headers = HPACKHeaders([
      (":method", request.method), (":scheme", "http"), (":path", request.path),
      (":authority", request.fields["host"] ?? ""),
    ])
    for (name, value) in request.fields.sorted(by: { $0.key < $1.key }) where name != "host" {
      headers.add(name: name, value: value)
    }
    context.write(wrapOutboundOut(.headers(.init(headers: headers))), promise: nil)
    let body = ByteBuffer(bytes: request.body)
    context.writeAndFlush(
      wrapOutboundOut(.data(.init(data: .byteBuffer(body), endStream: true))), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let block):
      if response.start.isEmpty || 100..<200 ~= response.status {
        response = HTTPMessage(block.headers)
      }
      if block.endStream { finish(response) }
    case .data(let data):
      if case .byteBuffer(let bytes) = data.data { response.body += bytes.readableBytesView }
      if data.endStream { finish(response) }
    default: break
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func channelInactive(context: ChannelHandlerContext) { handlerRemoved(context: context) }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    finish(nil)
  }

  func finish(_ response: HTTPMessage?) {
    let ended = ended
    self.ended = nil
    ended?(response)
  }

  /// Gives the request up, by a reset of its stream.
  func cancel() {
    ended = nil
    connection.loop.execute { [self] in context?.close(promise: nil) }
  }
}

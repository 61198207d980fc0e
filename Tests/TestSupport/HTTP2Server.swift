import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix

/// A backend that speaks HTTP/2 in clear, by SwiftNIO's server with its default limits: 100 streams, heads of 16 KiB,
/// and 200 resets in 30 seconds. It ends the connection of a client that exceeds one of the latter two.
///
/// Its responses go by the path: `/never` gets none, `/later` one after a tenth of a second, `/long` one of a mebibyte,
/// and `/end` ends the connection. Any other gets `ok` at once.
package final class HTTP2Server: Sendable {
  /// The counts so far.
  package struct Tally: Sendable {
    package var connections = 0
    /// Requests that came whole.
    package var requests = 0
    /// The streams that the client has reset, by the number of the connection.
    package var resets: [Int: Int] = [:]
    /// The errors for which connections were ended.
    package var errors: [String] = []
  }

  package let tally: Watched<Tally>
  package let port: Int
  private let listener: any Channel

  package init() async throws {
    let tally = Watched(Tally())
    self.tally = tally
    listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 512)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try Self.start(on: channel, tally) }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    port = listener.localAddress?.port ?? 0
  }

  deinit { listener.close(promise: nil) }

  private static func start(on channel: any Channel, _ tally: Watched<Tally>) throws {
    let number = tally.withValue { tally in
      tally.connections += 1
      return tally.connections
    }
    let codec = NIOHTTP2Handler(
      mode: .server, eventLoop: channel.eventLoop, connectionConfiguration: .init(),
      streamConfiguration: .init()
    ) { stream in
      stream.eventLoop.makeCompletedFuture {
        try stream.pipeline.syncOperations.addHandler(StreamHandler(of: number, tally))
      }
    }
    try channel.pipeline.syncOperations.addHandlers([codec, ErrorHandler(tally)])
  }
}

/// Ends a connection at the first error.
private final class ErrorHandler: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame

  private let tally: Watched<HTTP2Server.Tally>

  init(_ tally: Watched<HTTP2Server.Tally>) { self.tally = tally }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is NIOHTTP2Errors.StreamError { return }
    // The end of a test resets what is open.
    if !(error is IOError) { tally.withValue { $0.errors.append("\(error)") } }
    context.close(promise: nil)
  }
}

/// Responds on one stream.
private final class StreamHandler: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  private let connection: Int
  private let tally: Watched<HTTP2Server.Tally>
  private var path = ""

  init(of connection: Int, _ tally: Watched<HTTP2Server.Tally>) {
    self.connection = connection
    self.tally = tally
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let block):
      path = block.headers.first(name: ":path") ?? ""
      if block.endStream { respond(context) }
    case .data(let data):
      if data.endStream { respond(context) }
    case .rstStream:
      tally.withValue { $0.resets[connection, default: 0] += 1 }
    default: break
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  private func respond(_ context: ChannelHandlerContext) {
    // The client may look at the tally as soon as it has the response, or the end.
    tally.withValue { $0.requests += 1 }
    switch path {
    case "/never": break
    case "/later":
      context.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(100)) {
        self.write(ByteBuffer(string: "ok"), context)
      }
    case "/long": write(ByteBuffer(repeating: 0x78, count: 1 << 20), context)
    case "/end": context.channel.parent?.close(promise: nil)
    default: write(ByteBuffer(string: "ok"), context)
    }
  }

  private func write(_ body: ByteBuffer, _ context: ChannelHandlerContext) {
    guard context.channel.isActive else { return }
    let head = HPACKHeaders([(":status", "200"), ("content-length", "\(body.readableBytes)")])
    context.write(wrapOutboundOut(.headers(.init(headers: head))), promise: nil)
    let end = HTTP2Frame.FramePayload.Data(data: .byteBuffer(body), endStream: true)
    context.writeAndFlush(wrapOutboundOut(.data(end)), promise: nil)
  }
}

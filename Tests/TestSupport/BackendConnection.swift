import Glibc
import NIOCore
import NIOHTTP1

/// One connection of `OrdersBackend`: reads requests with NIO's parser, writes responses byte by byte.
final class BackendConnection: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart

  private let backend: OrdersBackend
  private let number: Int
  private var request = BackendRequest(method: "", target: "", fields: [])
  private var hasEarlyResponse = false

  init(backend: OrdersBackend, number: Int) {
    self.backend = backend
    self.number = number
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      request = BackendRequest(
        method: head.method.rawValue, target: head.uri,
        fields: head.headers.map { (name: $0.name, value: $0.value) })
      request.connection = number
      hasEarlyResponse = false
      guard let reply = backend.earlyReply(to: request) else { return }
      hasEarlyResponse = true
      response(reply, on: context.channel)
    case .body(let bytes):
      request.bodyLength += bytes.readableBytes
      if request.body.count < 4 << 20 { request.body += bytes.readableBytesView }
    case .end:
      let reply = backend.reply(to: request)
      if !hasEarlyResponse { response(reply, on: context.channel) }
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  private func response(_ reply: Reply, on channel: any Channel) {
    let write: @Sendable () -> Void = { [backend] in
      channel.eventLoop.scheduleTask(in: TimeAmount(reply.delay)) {
        Self.write(reply, of: backend, on: channel)
      }
    }
    if let gate = reply.gate { gate.whenOpen(write) } else { write() }
  }

  private static func write(_ reply: Reply, of backend: OrdersBackend, on channel: any Channel) {
    guard reply.ending != .closedWithoutResponse else { return channel.close(promise: nil) }
    channel.writeAndFlush(ByteBuffer(string: reply.head), promise: nil)
    var length = reply.content.count
    switch reply.ending {
    case .cut(let after), .reset(let after): length = after
    case .whole, .closedWithoutResponse: break
    }
    switch reply.content {
    case .bytes(let bytes):
      channel.writeAndFlush(framed(ByteBuffer(bytes: bytes.prefix(length)), reply), promise: nil)
      end(reply, on: channel)
    case .filler:
      fill(length, reply, of: backend, on: channel)
    }
  }

  /// The bytes of all fillers: NIO fills a buffer byte by byte, which takes long without optimisation.
  private static let filler = ByteBuffer(repeating: UInt8(ascii: "x"), count: 256 << 10)

  /// Sends the next piece when the one before has left: no more than one is held.
  private static func fill(_ count: Int, _ reply: Reply, of backend: OrdersBackend, on channel: any Channel) {
    guard count > 0 else { return end(reply, on: channel) }
    var filler = filler
    guard let bytes = filler.readSlice(length: min(count, filler.readableBytes)) else { return }
    let piece = bytes.readableBytes
    channel.writeAndFlush(framed(bytes, reply)).whenSuccess {
      backend.log.withValue { $0.sent += piece }
      fill(count - piece, reply, of: backend, on: channel)
    }
  }

  private static func framed(_ bytes: ByteBuffer, _ reply: Reply) -> ByteBuffer {
    guard case .chunked = reply.framing, bytes.readableBytes > 0 else { return bytes }
    var chunk = ByteBuffer(string: String(bytes.readableBytes, radix: 16) + "\r\n")
    chunk.writeImmutableBuffer(bytes)
    chunk.writeString("\r\n")
    return chunk
  }

  private static func end(_ reply: Reply, on channel: any Channel) {
    switch reply.ending {
    case .cut: return close(channel)
    case .reset:
      _ = (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
      return close(channel)
    case .whole, .closedWithoutResponse: break
    }
    switch reply.framing {
    case .length, .bare: break
    case .chunked:
      let trailers = reply.trailers.map { "\($0.0): \($0.1)\r\n" }.joined()
      channel.writeAndFlush(ByteBuffer(string: "0\r\n\(trailers)\r\n"), promise: nil)
    case .close: close(channel)
    }
  }

  /// Closes behind everything that was written.
  private static func close(_ channel: any Channel) {
    channel.writeAndFlush(ByteBuffer()).whenComplete { _ in channel.close(promise: nil) }
  }
}

import NIOCore
import Platform

final class RedisChannelHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The link; `nil` once it has given up this connection.
  private var link: RedisLink?
  private var context: ChannelHandlerContext?
  private var writer: SocketWriter?
  private var reader = HiredisReader()

  /// Whether bytes leave unchanged, without TLS.
  private let isPlain: Bool

  let attempt: Int

  init(link: RedisLink, attempt: Int, isPlain: Bool) {
    self.link = link
    self.attempt = attempt
    self.isPlain = isPlain
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    writer = SocketWriter(below: context.channel, isPlain: isPlain)
  }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelActive(context: ChannelHandlerContext) { link?.opened(self) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let bytes = unwrapInboundIn(data)
    link?.arrived(bytes.readableBytes)
    bytes.withUnsafeReadableBytes { reader.feed($0) }
    do throws(RedisProtocolError) {
      while let link, let reply = try reader.next() { link.received(reply) }
    } catch {
      link?.broke("what Redis sent cannot be read: \(error.text)", .refusal)
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) { link?.readComplete() }

  func channelInactive(context: ChannelHandlerContext) {
    link?.broke("Redis closed the connection", .refusal)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    link?.broke(plainText(of: error), .failure(error))
  }

  func write(_ buffer: ByteBuffer) {
    if let context { writer?.write(buffer, context) }
  }

  var hasUnread: Bool { context.flatMap { writer?.hasUnread($0) } ?? false }

  var unsentBytes: Int { context.flatMap { writer?.unsentBytes($0) } ?? 0 }

  func abandon() {
    link = nil
    context?.close(promise: nil)
  }
}

import NIOCore
import Wire

/// Takes the PROXY header off a connection's first bytes, fires it as an event, and leaves the pipeline. Closes a
/// connection that does not begin with one.
final class ProxyHeaderHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private var inbound = ByteBuffer()
  private var isOver = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isOver else { return context.fireChannelRead(data) }
    var bytes = unwrapInboundIn(data)
    inbound.writeBuffer(&bytes)
    do throws(ProxyHeader.Malformed) {
      guard let header = try ProxyHeader.read(&inbound) else { return }
      isOver = true
      context.fireUserInboundEventTriggered(header)
      if inbound.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(inbound)) }
      context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    } catch {
      isOver = true
      context.close(promise: nil)
    }
  }
}

import NIOCore
import Wire

/// The bytes of a backend on their way to the codec (`HeaderTableLimit`).
final class SettingsIntake: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  // A server begins with a frame.
  private var headerTable = HeaderTableLimit(prefaceBytes: 0)

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    headerTable.apply(to: &bytes)
    context.fireChannelRead(wrapInboundOut(bytes))
  }
}

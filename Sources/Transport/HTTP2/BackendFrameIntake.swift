import NIOCore
import Wire

/// The bytes of a backend on their way to the codec (`HeaderTableLimit`, `WholeFrames`).
final class BackendFrameIntake: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  // A server begins with a frame.
  private var headerTable = HeaderTableLimit(prefaceBytes: 0)
  private var wholeFrames = WholeFrames(prefaceBytes: 0)

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    headerTable.apply(to: &bytes)
    wholeFrames.read(bytes) { context.fireChannelRead(wrapInboundOut($0)) }
  }
}

import NIOCore
import Platform
import Wire

/// The bytes of a backend on their way to the codec (`HeaderTableLimit`, `WholeFrames`).
final class BackendFrameIntake: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  // A server begins with a frame.
  private var headerTable = HeaderTableLimit(prefaceBytes: 0)
  private var wholeFrames = WholeFrames(prefaceBytes: 0)
  private var isPassing = false
  private var isOver = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    headerTable.apply(to: &bytes)
    wholeFrames.append(bytes)
    // A channel whose write fails reads what is left within that write, and so within what a piece has led to.
    guard !isPassing else { return }
    isPassing = true
    defer { isPassing = false }
    while !isOver, let piece = wholeFrames.next() { context.fireChannelRead(wrapInboundOut(piece)) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    isOver = true
    context.fireChannelInactive()
    context.completeReadLater()
  }
}

import NIOCore

/// Holds flushes back while a read is handled, so that the responses of many streams leave in one write.
final class FlushGate: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundIn = IOData

  private let session: ClientSession
  private var isReading = false {
    didSet { session.holdsFlushes = isReading }
  }
  private var isDue = false

  init(of session: ClientSession) { self.session = session }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    isReading = true
    context.fireChannelRead(data)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    context.fireChannelReadComplete()
    isReading = false
    release(context)
    session.countUnread()
  }

  func flush(context: ChannelHandlerContext) {
    isDue = true
    if !isReading { release(context) }
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    release(context)
    context.close(mode: mode, promise: promise)
  }

  private func release(_ context: ChannelHandlerContext) {
    guard isDue else { return }
    isDue = false
    context.flush()
  }
}

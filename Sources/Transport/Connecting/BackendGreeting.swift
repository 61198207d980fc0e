import NIOCore
import NIOTLS

/// Waits until a backend has proved who it is, and then lets what it has agreed upon speak.
final class BackendGreeting: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = ByteBuffer

  /// Given what ALPN has chosen.
  private let start: (any Channel, String?) throws -> Void
  private var error: (any Error)?
  private let end = LateResult()

  init(start: @escaping (any Channel, String?) throws -> Void) { self.start = start }

  /// Succeeds once what speaks has been added to the pipeline.
  func whenDone(on loop: any EventLoop) -> EventLoopFuture<Void> { end.wait(on: loop) }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if !end.isSet, case .handshakeCompleted(let choice)? = event as? TLSUserEvent {
      // At once: the backend's first bytes may follow in the same read.
      let started = Result { try start(context.channel, choice) }
      end.set(started)
    }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard !end.isSet else { return context.fireErrorCaught(error) }
    self.error = error
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    end.set(.failure(error ?? ChannelError.eof))
    context.fireChannelInactive()
  }
}

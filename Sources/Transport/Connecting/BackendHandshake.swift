import NIOCore
import NIOTLS

/// A handler that waits for the end of the TLS handshake and then adds the HTTP handler that the backend has agreed to.
/// Confined to its loop, hence `@unchecked Sendable`.
final class BackendHandshake: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = ByteBuffer

  /// Adds the HTTP handler. Gets the protocol that ALPN has chosen.
  private let start: (any Channel, String?) throws -> Void
  private var error: (any Error)?
  private let end = OneShot()

  init(start: @escaping (any Channel, String?) throws -> Void) { self.start = start }

  /// Returns a future that succeeds once the HTTP handler is in the pipeline.
  func whenDone(on loop: any EventLoop) -> EventLoopFuture<Void> {
    loop.assertInEventLoop()
    return end.wait(on: loop)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    context.eventLoop.assertInEventLoop()
    if !end.isSet, case .handshakeCompleted(let choice)? = event as? TLSUserEvent {
      // At once, because the backend's first bytes may follow in the same read.
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

  /// Handles the end of the connection. One that is cut as soon as it is made does not become inactive.
  func handlerRemoved(context: ChannelHandlerContext) { end.set(.failure(error ?? ChannelError.eof)) }
}

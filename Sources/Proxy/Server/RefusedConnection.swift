import Idempotency
import NIOCore
import Telemetry

/// A connection over the limit: gets 503 at once, so that the client or a balancer can go elsewhere.
///
/// It must not wait in the kernel's queue: there the client learns nothing, and takes the place of others when there is
/// room again.
final class RefusedConnection: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The number of refused connections that get a response at once. The others are closed without one, so that they
  /// cost no more than the accept.
  static var maxResponses: Int { 64 }
  /// The time that a client has to read the response: to close with its request unread would reset the connection.
  private static var lingering: TimeAmount { .seconds(1) }

  private let getsResponse: Bool
  private let environment: ProxyEnvironment

  init(getsResponse: Bool, environment: ProxyEnvironment) {
    self.getsResponse = getsResponse
    self.environment = environment
  }

  func channelActive(context: ChannelHandlerContext) {
    environment.counters.add(.connectionsRefused)
    guard getsResponse else { return context.close(promise: nil) }
    let response = ResponseEncoder.whole(
      ClientResponse(.overloaded(environment.isDraining ? .draining : .busy)),
      minorVersion: 1,
      isClosing: true)
    let channel = context.channel
    context.writeAndFlush(wrapOutboundOut(response)).whenComplete { _ in
      channel.close(mode: .output, promise: nil)
    }
    context.eventLoop.scheduleTask(in: Self.lingering) { channel.close(promise: nil) }
  }

  /// Drops the request.
  func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case ChannelEvent.inputClosed? = event as? ChannelEvent { context.close(promise: nil) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

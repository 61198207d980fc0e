import Idempotency
import NIOCore
import Telemetry

/// A connection over the limit: told to come back, at once, so that a client or a balancer can go elsewhere.
///
/// It is not left waiting in the kernel's queue: who waits there knows nothing, and takes the place of those who come
/// when there is room again.
final class RefusedConnection: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// How many are told why; those beyond are closed without a word, so that they cost no more than their accepting.
  static var room: Int { 64 }
  /// How long a client may take to read why: closing with its request unread would reset what it was told.
  private static var lingering: TimeAmount { .seconds(1) }

  private let isToldWhy: Bool
  private let environment: ProxyEnvironment

  init(isToldWhy: Bool, environment: ProxyEnvironment) {
    self.isToldWhy = isToldWhy
    self.environment = environment
  }

  func channelActive(context: ChannelHandlerContext) {
    environment.counters.add(.connectionsRefused)
    guard isToldWhy else { return context.close(promise: nil) }
    let problem = AnswerEncoder.whole(
      Answer(.overloaded(.busy, retryAfter: 1000)), minorVersion: 1, isClosing: true)
    let channel = context.channel
    context.writeAndFlush(wrapOutboundOut(problem)).whenComplete { _ in
      channel.close(mode: .output, promise: nil)
    }
    context.eventLoop.scheduleTask(in: Self.lingering) { channel.close(promise: nil) }
  }

  /// What it asks is not looked at.
  func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case ChannelEvent.inputClosed? = event as? ChannelEvent { context.close(promise: nil) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  func channelInactive(context: ChannelHandlerContext) {
    environment.counters.change(.openConnections, by: -1)
  }
}

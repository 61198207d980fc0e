import NIOCore
import NIOHTTP1

/// Replaces the `Host` of a request whose target is in absolute form by the target's authority (RFC 9112, section
/// 3.2.2), which `PageGuard` then judges. The layers above drop the authority of such a target unread.
final class AbsoluteTarget: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .head(var head) = unwrapInboundIn(data), !head.uri.hasPrefix("/"), head.uri != "*" else {
      return context.fireChannelRead(data)
    }
    head.headers.replaceOrAdd(name: "Host", value: Self.authority(of: head.uri))
    context.fireChannelRead(wrapInboundOut(.head(head)))
  }

  /// The authority of an absolute target; empty, which is nobody's, for any other text and for another scheme.
  private static func authority(of target: String) -> String {
    let scheme = "http://"
    guard target.prefix(scheme.count).lowercased() == scheme else { return "" }
    return String(target.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" && $0 != "#" })
  }
}

/// Puts handlers behind the decoder of the pipeline that it is added to.
final class BehindDecoder: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = Any

  private let handlers: [any ChannelHandler]

  init(_ handlers: any ChannelHandler...) { self.handlers = handlers }

  func handlerAdded(context: ChannelHandlerContext) {
    let pipeline = context.pipeline.syncOperations
    do {
      let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
      try pipeline.addHandlers(handlers, position: .after(decoder))
    } catch {
      context.close(promise: nil)
    }
  }
}

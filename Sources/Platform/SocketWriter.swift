import Glibc
import NIOCore

/// Writes directly to a connection's socket while no earlier bytes wait in NIO. NIO's list of pending writes would make
/// a replay a twelfth more expensive, although its bytes can leave at once.
///
/// Confined to its loop. All bytes of the connection must be written through it.
public final class SocketWriter: @unchecked Sendable {
  /// The socket; `nil` if all bytes go through NIO.
  private let descriptor: NIOBSDSocket.Handle?
  /// The number of writes that NIO has not completed yet. No direct write may overtake them.
  private var waiting = 0
  /// Called when a pending write has completed or failed.
  public var didLeave: (() -> Void)?
  /// Whether this writer is passing bytes to NIO.
  fileprivate var isPassingOn = false

  /// Whether a part of what was written has not left yet.
  public var isWaiting: Bool { waiting > 0 }

  /// Creates a writer.
  ///
  /// - Parameter isPlain: False if the bytes do not leave unchanged, as under TLS; all then go through NIO.
  public init(below channel: any Channel, isPlain: Bool) {
    let handlers = channel.pipeline.syncOperations
    descriptor =
      isPlain ? try? handlers.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 } : nil
    #if DEBUG
      if descriptor != nil { try? handlers.addHandler(SocketWriterFence(self), position: .first) }
    #endif
  }

  /// Whether the socket holds bytes from the peer that were not read yet. False if that cannot be determined.
  public func hasUnread(_ context: ChannelHandlerContext) -> Bool {
    guard let descriptor, context.channel.isActive else { return false }
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
  }

  /// Writes as much as the kernel takes now and passes the rest to NIO, which also handles a write error.
  ///
  /// - Returns: True if all bytes have left.
  @discardableResult
  public func write(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) -> Bool {
    context.eventLoop.assertInEventLoop()
    var bytes = bytes
    // An active channel owns its descriptor.
    if waiting == 0, let descriptor, context.channel.isActive {
      let count = bytes.withUnsafeReadableBytes { bytes in
        send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
      }
      if count > 0 { bytes.moveReaderIndex(forwardBy: count) }
      if bytes.readableBytes == 0 { return true }
    }
    let written = context.eventLoop.makePromise(of: Void.self)
    waiting += 1
    written.futureResult.whenComplete { [self] _ in
      waiting -= 1
      didLeave?()
    }
    let wasPassingOn = isPassingOn
    isPassingOn = true
    context.writeAndFlush(NIOAny(bytes), promise: written)
    isPassingOn = wasPassingOn
    return false
  }
}

#if DEBUG
  /// Stops the process on bytes that did not pass the connection's writer, because the writer's next bytes could
  /// overtake them. An empty write, which marks the end of those before it, may pass, and so may everything once the
  /// writer is gone: the connection was left to HTTP/2. In debug builds only.
  private final class SocketWriterFence: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private weak var writer: SocketWriter?

    init(_ writer: SocketWriter) { self.writer = writer }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      let mayPass = writer?.isPassingOn ?? true
      precondition(
        mayPass || unwrapOutboundIn(data).readableBytes == 0, "SocketWriter: bytes were written past it")
      context.write(data, promise: promise)
    }
  }
#endif

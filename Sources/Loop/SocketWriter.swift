import NIOCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Writes to a connection's socket past NIO while nothing of ours waits there: a replay would otherwise cost a twelfth
/// more, for NIO's list of pending writes, only to leave at once.
///
/// Confined to its loop. All bytes that are written must come through here.
public final class SocketWriter: @unchecked Sendable {
  /// `nil` where all goes through NIO.
  private let descriptor: NIOBSDSocket.Handle?
  /// How many writes NIO has not ended yet: none may overtake them.
  private var waiting = 0
  /// Called when some of what waited has left, or never will.
  public var didLeave: (() -> Void)?

  /// Whether some of what was written has not left yet.
  public var isWaiting: Bool { waiting > 0 }

  /// - Parameter isPlain: false where bytes do not leave as they are, under TLS.
  public init(below channel: any Channel, isPlain: Bool) {
    let handlers = channel.pipeline.syncOperations
    descriptor =
      isPlain ? try? handlers.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 } : nil
  }

  /// Whether bytes from the peer wait in the socket that nobody has read yet; false where that cannot be known.
  public func hasUnread(_ context: ChannelHandlerContext) -> Bool {
    guard let descriptor, context.channel.isActive else { return false }
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
  }

  /// Writes what the kernel takes now, and gives NIO the rest, which also meets what went wrong.
  ///
  /// - Returns: whether all of it has left.
  @discardableResult
  public func write(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) -> Bool {
    var bytes = bytes
    // A channel that is active owns its descriptor.
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
    context.writeAndFlush(NIOAny(bytes), promise: written)
    return false
  }
}

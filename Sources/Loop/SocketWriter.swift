import NIOCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

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

  /// Whether a part of what was written has not left yet.
  public var isWaiting: Bool { waiting > 0 }

  /// Creates a writer.
  ///
  /// - Parameter isPlain: False if the bytes do not leave unchanged, as under TLS; all then go through NIO.
  public init(below channel: any Channel, isPlain: Bool) {
    let handlers = channel.pipeline.syncOperations
    descriptor =
      isPlain ? try? handlers.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 } : nil
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
    context.writeAndFlush(NIOAny(bytes), promise: written)
    return false
  }
}

import NIOCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The socket of a client's connection, written to past NIO while nothing of ours waits there: a replay would
/// otherwise cost a twelfth more, for NIO's list of pending writes, only to leave at once. To be used while its channel is
/// active, which owns it.
struct ClientSocket {
  private let descriptor: NIOBSDSocket.Handle

  /// `nil` where bytes do not leave as they are, or through no socket.
  init?(below channel: any Channel, isSecure: Bool) {
    let handlers = channel.pipeline.syncOperations
    guard !isSecure,
      let descriptor = try? handlers.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self, { $0 })
    else { return nil }
    self.descriptor = descriptor
  }

  /// Sends what the kernel takes now, and leaves the rest; what went wrong NIO meets with that.
  func send(_ bytes: inout ByteBuffer) {
    let count = bytes.withUnsafeReadableBytes { bytes in
      sendBytes(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
    }
    if count > 0 { bytes.moveReaderIndex(forwardBy: count) }
  }
}

private func sendBytes(
  _ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int, _ flags: Int32
) -> Int {
  send(descriptor, start, count, flags)
}

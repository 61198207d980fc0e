import NIOCore

extension ByteBuffer {
  /// Puts bytes that have arrived behind those that are not read yet, and gives up what was read.
  ///
  /// A write alone keeps all that was ever read: a peer each of whose writes ends within a message would make the buffer
  /// grow with everything that it sends.
  public mutating func follow(with bytes: ByteBuffer) {
    guard readableBytes > 0 else { return self = bytes }
    discardReadBytes()
    writeImmutableBuffer(bytes)
  }
}

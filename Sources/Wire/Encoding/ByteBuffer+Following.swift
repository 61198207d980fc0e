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

  /// The same bytes, in memory of their own where they hold more than 4 KiB and more than twice what they need.
  ///
  /// A slice holds all of the buffer that it was cut from: one byte of a read holds 64 KiB, and counts as one.
  public var compact: ByteBuffer {
    guard storageCapacity > max(2 * readableBytes, 4 << 10) else { return self }
    guard readableBytes > 0 else { return ByteBuffer() }
    return readableBytesView.withUnsafeBytes { ByteBuffer(bytes: $0) }
  }
}

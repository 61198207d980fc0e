import NIOCore

/// The sizes of the reads from a client, as its bytes arrive.
///
/// A channel keeps its last buffer for as long as it lives. Those of large reads are not kept: after an upload an idle
/// connection would hold 64 KiB for nothing.
struct ClientReadSizes: RecvByteBufferAllocator {
  static let full = 64 << 10
  /// The largest buffer that is kept.
  private static let maxKept = 4 << 10

  private var sizes: AdaptiveRecvByteBufferAllocator

  /// - Parameter max: The largest read, in bytes.
  init(max: Int = full) {
    // Most requests fit in the minimum, which the allocator keeps in its cache of small blocks (up to 1032 bytes).
    sizes = AdaptiveRecvByteBufferAllocator(minimum: 512, initial: min(4 << 10, max), maximum: max)
  }

  func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { sizes.buffer(allocator: allocator) }

  /// The size of the next buffer if the channel may take the one that it keeps; `nil` if it has to make one.
  func nextBufferSize() -> Int? { sizes.nextBufferSize().flatMap { $0 <= Self.maxKept ? $0 : nil } }

  /// Returns whether the channel must not take the buffer that it keeps.
  mutating func record(actualReadBytes: Int) -> Bool {
    let grows = sizes.record(actualReadBytes: actualReadBytes)
    return grows || nextBufferSize() == nil
  }
}

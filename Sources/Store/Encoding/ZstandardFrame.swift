import CZstd
import NIOCore
import Wire

/// Compressed content as one frame of Zstandard (RFC 8878), with the content's length and a checksum.
enum ZstandardFrame {
  /// The fastest level but the negative ones. Level 3 takes twice as long for no more.
  private static let level: Int32 = 1

  /// The content as a frame; `nil` if the frame would be longer than `maxLength`, or if there is no memory.
  static func compressing(_ content: ByteBuffer, maxLength: Int) -> ByteBuffer? {
    guard maxLength > 0, let context = ZSTD_createCCtx() else { return nil }
    defer { ZSTD_freeCCtx(context) }
    for (parameter, value) in [(ZSTD_c_compressionLevel, level), (ZSTD_c_checksumFlag, 1)] {
      guard ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0 else { return nil }
    }
    var frame = ByteBufferAllocator().buffer(capacity: maxLength)
    let length = content.withUnsafeReadableBytes { source in
      frame.withUnsafeMutableWritableBytes { target in
        ZSTD_compress2(context, target.baseAddress, maxLength, source.baseAddress, source.count)
      }
    }
    guard ZSTD_isError(length) == 0 else { return nil }
    invariant(length <= maxLength, "a frame is longer than the room for it")
    frame.moveWriterIndex(forwardBy: length)
    return frame
  }

  /// The content of a frame; `nil` unless the bytes are exactly one sound frame of a content of `length` bytes. No more
  /// than these are allocated and written.
  static func content(of frame: ByteBuffer, length: Int) -> ByteBuffer? {
    let isOfLength = frame.withUnsafeReadableBytes { bytes in
      ZSTD_getFrameContentSize(bytes.baseAddress, bytes.count) == UInt64(length)
        && ZSTD_findFrameCompressedSize(bytes.baseAddress, bytes.count) == bytes.count
    }
    guard isOfLength, length > 0 else { return nil }
    var content = ByteBufferAllocator().buffer(capacity: length)
    let written = frame.withUnsafeReadableBytes { source in
      content.withUnsafeMutableWritableBytes { target in
        ZSTD_decompress(target.baseAddress, length, source.baseAddress, source.count)
      }
    }
    guard written == length else { return nil }
    content.moveWriterIndex(forwardBy: length)
    return content
  }
}

struct PackedContent {
  let bytes: ByteBuffer
  let plainLength: UInt32?

  init(_ content: ByteBuffer) {
    bytes = content
    plainLength = nil
  }

  /// Compresses a content; `nil` if less than a tenth would be saved.
  init?(compressing content: ByteBuffer) {
    let length = content.readableBytes
    guard let plainLength = UInt32(exactly: length),
      let frame = ZstandardFrame.compressing(content, maxLength: length - length / 10)
    else { return nil }
    bytes = frame
    self.plainLength = plainLength
  }
}

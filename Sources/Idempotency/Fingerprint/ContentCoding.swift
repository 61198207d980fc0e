import CZlib
import CZstd
import NIOCore
import Wire

/// A content coding (RFC 9110, section 8.4.1) that the second recipe undoes, so that equal content has one fingerprint
/// however it was compressed.
enum ContentCoding: Sendable {
  case gzip, deflate, zstd

  /// The maximum of the content's size, as a multiple of the coded one: what people send shrinks to a tenth or so, and
  /// a larger factor is a bomb, or so regular that its bytes do as well.
  static let maxRatio = 100

  /// The coding of a body; `nil` unless it has one alone, in one field, that Semel undoes.
  init?(of head: MessageHead) {
    guard head.count(.contentEncoding) == 1, let field = head.first(.contentEncoding),
      let coding = head.withBytes(field.valueRange, ContentCoding.init)
    else { return nil }
    self = coding
  }

  private init?(_ name: UnsafeRawBufferPointer) {
    switch name.count {
    case 4 where ASCII.equalsIgnoringCase(name, "gzip"): self = .gzip
    case 4 where ASCII.equalsIgnoringCase(name, "zstd"): self = .zstd
    case 6 where ASCII.equalsIgnoringCase(name, "x-gzip"): self = .gzip
    case 7 where ASCII.equalsIgnoringCase(name, "deflate"): self = .deflate
    default: return nil
    }
  }

  /// The maximum number of bytes that undoing the coding writes. A size that the body states is taken at its word, since
  /// a false one makes the body malformed.
  ///
  /// - Parameter limit: The maximum size of the content, whatever the body's size is.
  /// - Returns: `nil` for a body that is not undone, since its content would be larger.
  func contentBound(of body: UnsafeRawBufferPointer, limit: Int) -> Int? {
    let bound = min(limit, Self.maxRatio * body.count)
    guard let stated = statedSize(of: body) else { return bound }
    return stated <= bound ? stated : nil
  }

  /// The size of the content that the body itself states; `nil` if it states none.
  private func statedSize(of body: UnsafeRawBufferPointer) -> Int? {
    switch self {
    case .deflate: return nil
    case .gzip:
      guard body.count >= 18 else { return nil }
      return Int(UInt32(littleEndian: body.loadUnaligned(fromByteOffset: body.count - 4, as: UInt32.self)))
    case .zstd:
      let size = ZSTD_getFrameContentSize(body.baseAddress, body.count)
      // The two greatest values stand for an unknown size and for no frame.
      return size >= UInt64.max - 1 ? nil : Int(clamping: size)
    }
  }

  /// Calls `visit` with the content of a body.
  ///
  /// - Returns: `nil` unless the body is exactly one sound stream of this coding, whose content is within the bounds.
  func withContent<Result>(
    of body: UnsafeRawBufferPointer, limit: Int, _ visit: (UnsafeRawBufferPointer) -> Result
  ) -> Result? {
    guard body.count > 0, let bound = contentBound(of: body, limit: limit) else { return nil }
    return withUnsafeTemporaryAllocation(byteCount: max(1, bound), alignment: 8) { memory in
      guard let count = decode(body, to: memory), count <= bound else { return nil }
      return visit(UnsafeRawBufferPointer(rebasing: memory[..<count]))
    }
  }

  /// The number of bytes of content that were written; `nil` for a body that is malformed, or too large.
  private func decode(_ body: UnsafeRawBufferPointer, to memory: UnsafeMutableRawBufferPointer) -> Int? {
    switch self {
    // The window of 32 KiB and, by 16, a header of gzip.
    case .gzip: return Self.inflate(body, windowBits: 15 + 16, to: memory)
    // Some clients leave the header of zlib out.
    case .deflate: return Self.inflate(body, windowBits: Self.hasZlibHeader(body) ? 15 : -15, to: memory)
    case .zstd:
      guard ZSTD_findFrameCompressedSize(body.baseAddress, body.count) == body.count else { return nil }
      let count = ZSTD_decompress(memory.baseAddress, memory.count, body.baseAddress, body.count)
      return ZSTD_isError(count) == 0 ? count : nil
    }
  }

  /// Whether the first two bytes are those of RFC 1950, section 2.2.
  private static func hasZlibHeader(_ body: UnsafeRawBufferPointer) -> Bool {
    body.count >= 2 && body[0] & 0x0F == 8 && (Int(body[0]) << 8 | Int(body[1])) % 31 == 0
  }

  private static func inflate(
    _ body: UnsafeRawBufferPointer, windowBits: Int32, to memory: UnsafeMutableRawBufferPointer
  ) -> Int? {
    guard let size = UInt32(exactly: body.count), let room = UInt32(exactly: memory.count) else { return nil }
    var stream = z_stream()
    guard semel_inflate_init(&stream, windowBits) == Z_OK else { return nil }
    defer { inflateEnd(&stream) }
    stream.next_in = UnsafeMutablePointer(
      mutating: body.baseAddress?.assumingMemoryBound(to: UInt8.self))
    stream.avail_in = size
    stream.next_out = memory.baseAddress?.assumingMemoryBound(to: UInt8.self)
    stream.avail_out = room
    guard CZlib.inflate(&stream, Z_FINISH) == Z_STREAM_END, stream.avail_in == 0 else { return nil }
    return Int(stream.total_out)
  }
}

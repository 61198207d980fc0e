import NIOCore
import Testing

@testable import Wire

/// The pieces in which the codec gets a peer's bytes.
struct WholeFramesTests {
  private static let preface: [UInt8] = Array("preface".utf8)

  private static func frame(_ length: Int, kind: UInt8 = 1, flags: UInt8 = 0) -> [UInt8] {
    [UInt8(length >> 16), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), kind, flags, 0, 0, 0, 1]
      + Array(repeating: 7, count: length)
  }

  /// The pieces that come out when the bytes come in reads of this size.
  private static func pieces(_ bytes: [UInt8], by size: Int) -> [[UInt8]] {
    var frames = WholeFrames(prefaceBytes: preface.count)
    var pieces: [[UInt8]] = []
    for start in stride(from: 0, to: bytes.count, by: size) {
      frames.append(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
      while let piece = frames.next() { pieces.append(Array(piece.readableBytesView)) }
    }
    return pieces
  }

  @Test(arguments: [1, 2, 8, 9, 10, 100, 5000, 16_393, 70_000])
  func `pieces end at the ends of frames, however the bytes arrive`(size: Int) {
    let parts = [Self.preface] + [0, 3, 16 << 10, 1, 9000, 9000].map { Self.frame($0) }
    let bytes = parts.flatMap(\.self)
    var ends: Set<Int> = []
    var end = 0
    for part in parts {
      end += part.count
      ends.insert(end)
    }
    let pieces = Self.pieces(bytes + Self.frame(50).dropLast(), by: size)
    #expect(pieces.flatMap(\.self) == bytes)
    var at = 0
    for piece in pieces {
      at += piece.count
      // The preface may come in parts.
      #expect(at < Self.preface.count || ends.contains(at), "\(at)")
      #expect(piece.count < 32 << 10 + 9)
    }
  }

  @Test(arguments: [1, 9, 10, 700])
  func `DATA is passed on as it arrives, and what follows it whole`(size: Int) {
    let data = Self.frame(5000, kind: 0)
    let begun = Self.pieces(Self.preface + data.dropLast(3), by: size)
    #expect(begun.flatMap(\.self) == Self.preface + data.dropLast(3))
    let followed = Self.pieces(Self.preface + data + Self.frame(50).dropLast(), by: size)
    #expect(followed.flatMap(\.self) == Self.preface + data)
  }

  @Test func `padded DATA is passed on whole`() {
    let data = Self.frame(5000, kind: 0, flags: 8)
    #expect(Self.pieces(Self.preface + data.dropLast(), by: 100).flatMap(\.self) == Self.preface)
    #expect(Self.pieces(Self.preface + data, by: 100).flatMap(\.self) == Self.preface + data)
  }

  @Test func `a frame that is too large is passed on at its head, and all that follows`() {
    let head: [UInt8] = [0, 0x40, 1, 0, 0, 0, 0, 0, 1]
    let pieces = Self.pieces(Self.preface + head + [1, 2, 3], by: 8)
    #expect(pieces.flatMap(\.self) == Self.preface + head + [1, 2, 3])
  }

  @Test func `a piece has no more than 8 frames, and what arrives between two pieces follows`() {
    var frames = WholeFrames(prefaceBytes: 0)
    let small = Self.frame(1)
    frames.append(ByteBuffer(bytes: Array(repeating: small, count: 100).flatMap(\.self)))
    #expect(frames.next()?.readableBytes == WholeFrames.maxFrames * small.count)
    frames.append(ByteBuffer(bytes: small + Self.frame(50).dropLast()))
    var rest = 0
    while let piece = frames.next() { rest += piece.readableBytes }
    #expect(rest == (101 - WholeFrames.maxFrames) * small.count)
    #expect(frames.next() == nil)
  }

  @Test func `the rest that is held does not hold the read`() {
    var frames = WholeFrames(prefaceBytes: 0)
    var read = ByteBuffer(repeating: 0, count: 64 << 10)
    read.setBytes(Self.frame(200).dropLast(), at: 0)
    frames.append(read.getSlice(at: 0, length: 208) ?? read)
    #expect(frames.next() == nil)
    #expect(frames.heldCapacity < 1024)
  }
}

struct CompactBufferTests {
  @Test func `a small slice of a large buffer gets memory of its own, and a large one keeps it`() {
    let read = ByteBuffer(repeating: 1, count: 64 << 10)
    let small = read.getSlice(at: 100, length: 10)?.compact
    #expect(small?.storageCapacity ?? .max < 512)
    #expect(small == ByteBuffer(repeating: 1, count: 10))
    #expect(read.getSlice(at: 100, length: 0)?.compact.storageCapacity == 0)
    #expect(read.compact.storageCapacity == read.storageCapacity)
    #expect(read.getSlice(at: 0, length: 40_000)?.compact.storageCapacity == read.storageCapacity)
  }
}

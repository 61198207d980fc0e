import Crypto
import Wire

/// SHA-256 over parts that are separated by their lengths, gathered in one scratch buffer on the stack.
///
/// Short inputs reach the hash in one piece. A part that does not fit into the buffer goes to the hash directly.
struct FramedHash: ~Copyable {
  /// The size of the buffer in bytes, which is the maximum that a temporary allocation keeps on the stack. A typical
  /// request fills a quarter of it.
  private static let scratchSize = 1024
  /// The size up to which a part is copied by loads and stores. A hostile body consists of parts of a byte, for which a
  /// call of `memcpy` costs more than the hash.
  private static let shortSize = 16

  private let scratch: UnsafeMutableRawPointer
  private var held = 0
  private var hasher: SHA256?

  private init(scratch: UnsafeMutableRawPointer) { self.scratch = scratch }

  /// The digest of the bytes that `feed` writes.
  ///
  /// - Parameter key: The key that makes the digest HMAC-SHA-256; `nil` for SHA-256.
  static func digest(under key: IdentityKey? = nil, _ feed: (inout FramedHash) -> Void) -> Digest256 {
    withUnsafeTemporaryAllocation(byteCount: scratchSize, alignment: 8) { memory in
      guard let scratch = memory.baseAddress else { invariantBroken("a buffer without memory") }
      var hash = FramedHash(scratch: scratch)
      key?.inner.withUnsafeBytes { hash.bytes($0) }
      feed(&hash)
      let digest = hash.finish()
      guard let key else { return digest }
      var outer = FramedHash(scratch: scratch)
      key.outer.withUnsafeBytes { outer.bytes($0) }
      for index in 0..<32 { outer.byte(digest[index]) }
      return outer.finish()
    }
  }

  /// Writes one byte.
  @inline(__always)
  mutating func byte(_ byte: UInt8) {
    if held == Self.scratchSize { spill() }
    scratch.storeBytes(of: byte, toByteOffset: held, as: UInt8.self)
    held += 1
  }

  /// Writes bytes without their length, for a part that marks its own end.
  @inline(__always)
  mutating func bytes(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count <= Self.shortSize, held <= Self.scratchSize - Self.shortSize else {
      long(bytes)
      return
    }
    short(bytes)
  }

  /// Writes a few bytes, for which there is room.
  @inline(__always)
  private mutating func short(_ bytes: UnsafeRawBufferPointer) {
    let end = scratch + held
    held += bytes.count
    guard bytes.count >= 8 else {
      for index in 0..<bytes.count { end.storeBytes(of: bytes[index], toByteOffset: index, as: UInt8.self) }
      return
    }
    // Two words that may overlap.
    let last = bytes.count - 8
    let words = (
      bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: last, as: UInt64.self)
    )
    end.storeBytes(of: words.0, as: UInt64.self)
    end.storeBytes(of: words.1, toByteOffset: last, as: UInt64.self)
  }

  @inline(never)
  private mutating func long(_ bytes: UnsafeRawBufferPointer) {
    if bytes.count > Self.scratchSize - held {
      spill()
      guard bytes.count <= Self.scratchSize else {
        update(bytes)
        return
      }
    }
    invariant(bytes.count <= Self.scratchSize - held, "a part of a hash is copied beyond its buffer")
    UnsafeMutableRawBufferPointer(start: scratch + held, count: bytes.count).copyMemory(from: bytes)
    held += bytes.count
  }

  /// Writes a number in seven bits per byte, the lowest first. No number's form is a prefix of another's.
  @inline(__always)
  mutating func number(_ number: Int) {
    var rest = UInt64(number)
    while rest > 0x7F {
      byte(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    byte(UInt8(truncatingIfNeeded: rest))
  }

  /// Writes bytes after their length.
  @inline(__always)
  mutating func frame(_ bytes: UnsafeRawBufferPointer) {
    number(bytes.count)
    self.bytes(bytes)
  }

  /// Writes up to seven bytes of a word, from the highest on, after their number.
  @inline(__always)
  mutating func frame(word: UInt64, count: Int) {
    if held > Self.scratchSize - 9 { spill() }
    scratch.storeBytes(of: UInt8(truncatingIfNeeded: count), toByteOffset: held, as: UInt8.self)
    scratch.storeBytes(of: word.bigEndian, toByteOffset: held + 1, as: UInt64.self)
    held += 1 + count
  }

  /// Writes a text after its length.
  mutating func frame(_ text: String) {
    var text = text
    text.withUTF8 { frame(UnsafeRawBufferPointer($0)) }
  }

  /// Writes bytes after their length, with the letters A to Z in lower case.
  mutating func frameLowercased(_ bytes: UnsafeRawBufferPointer) {
    number(bytes.count)
    for byte in bytes { self.byte(byte &- 0x41 < 26 ? byte | 0x20 : byte) }
  }

  @inline(never)
  private mutating func spill() {
    invariant(held <= Self.scratchSize, "a hash takes more bytes than its buffer holds")
    update(UnsafeRawBufferPointer(start: scratch, count: held))
    held = 0
  }

  private mutating func update(_ bytes: UnsafeRawBufferPointer) {
    if hasher == nil { hasher = SHA256() }
    hasher?.update(bufferPointer: bytes)
  }

  private consuming func finish() -> Digest256 {
    spill()
    return Digest256((hasher ?? SHA256()).finalize())
  }
}

/// The order of two sequences, byte by byte. A prefix of a sequence comes before it.
enum ByteOrder {
  case ascending, same, descending

  init<Left: IteratorProtocol<UInt8>, Right: IteratorProtocol<UInt8>>(_ left: Left, _ right: Right) {
    var left = left
    var right = right
    while true {
      switch (left.next(), right.next()) {
      case (nil, nil):
        self = .same
        return
      case (nil, _):
        self = .ascending
        return
      case (_, nil):
        self = .descending
        return
      case (let one?, let other?):
        guard one == other else {
          self = one < other ? .ascending : .descending
          return
        }
      }
    }
  }

  init(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) {
    for index in 0..<min(left.count, right.count) where left[index] != right[index] {
      self = left[index] < right[index] ? .ascending : .descending
      return
    }
    self = left.count == right.count ? .same : left.count < right.count ? .ascending : .descending
  }
}

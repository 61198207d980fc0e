import Crypto

/// SHA-256 over parts that are separated by their lengths, gathered in one scratch buffer on the stack.
///
/// Short inputs reach the hash in one piece. A part that does not fit into the buffer goes to the hash directly.
struct FramedHash: ~Copyable {
  /// The size of the buffer in bytes, which is the maximum that a temporary allocation keeps on the stack. A typical
  /// request fills a quarter of it.
  private static let scratchSize = 1024

  private let scratch: UnsafeMutableRawBufferPointer
  private var held = 0
  private var hasher: SHA256?

  private init(scratch: UnsafeMutableRawBufferPointer) { self.scratch = scratch }

  /// The digest of the bytes that `feed` writes.
  ///
  /// - Parameter key: The key that makes the digest HMAC-SHA-256; `nil` for SHA-256.
  static func digest(under key: IdentityKey? = nil, _ feed: (inout FramedHash) -> Void) -> Digest256 {
    withUnsafeTemporaryAllocation(byteCount: scratchSize, alignment: 8) { scratch in
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
  mutating func byte(_ byte: UInt8) {
    if held == scratch.count { spill() }
    scratch[held] = byte
    held += 1
  }

  /// Writes bytes without their length, for a part that marks its own end.
  mutating func bytes(_ bytes: UnsafeRawBufferPointer) {
    if bytes.count > scratch.count - held {
      spill()
      guard bytes.count <= scratch.count else {
        update(bytes)
        return
      }
    }
    UnsafeMutableRawBufferPointer(rebasing: scratch[held...]).copyMemory(from: bytes)
    held += bytes.count
  }

  /// Writes a number in seven bits per byte, the lowest first. No number's form is a prefix of another's.
  mutating func number(_ number: Int) {
    var rest = UInt64(number)
    while rest > 0x7F {
      byte(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    byte(UInt8(rest))
  }

  /// Writes bytes after their length.
  mutating func frame(_ bytes: UnsafeRawBufferPointer) {
    number(bytes.count)
    self.bytes(bytes)
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

  private mutating func spill() {
    update(UnsafeRawBufferPointer(rebasing: scratch[..<held]))
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

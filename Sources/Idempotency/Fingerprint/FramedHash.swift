import Crypto

/// SHA-256 over parts that are told apart by their lengths, gathered in one scratch buffer on the stack.
///
/// Short inputs reach the hash in one piece; a part that does not fit goes to it directly.
struct FramedHash: ~Copyable {
  /// What a temporary allocation holds on the stack at most; the usual request fits four times.
  private static let scratchSize = 1024

  private let scratch: UnsafeMutableRawBufferPointer
  private var held = 0
  private var hasher: SHA256?

  private init(scratch: UnsafeMutableRawBufferPointer) { self.scratch = scratch }

  /// The digest of what `feed` writes.
  /// - Parameter key: makes it HMAC-SHA-256 under this key.
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

  /// One byte, as it is.
  mutating func byte(_ byte: UInt8) {
    if held == scratch.count { spill() }
    scratch[held] = byte
    held += 1
  }

  /// Bytes without a length: for a part whose end its own form tells.
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

  /// A number, seven bits a byte, the lowest first; no number's form begins another's.
  mutating func number(_ number: Int) {
    var rest = UInt64(number)
    while rest > 0x7F {
      byte(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    byte(UInt8(rest))
  }

  /// Bytes with their length before them.
  mutating func frame(_ bytes: UnsafeRawBufferPointer) {
    number(bytes.count)
    self.bytes(bytes)
  }

  /// A text with its length before it.
  mutating func frame(_ text: String) {
    var text = text
    text.withUTF8 { frame(UnsafeRawBufferPointer($0)) }
  }

  /// As `frame`, with the letters A to Z in lower case.
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

import Wire

/// SipHash-2-4, a keyed hash of 64 bits for short inputs (Aumasson and Bernstein, 2012).
///
/// Without the key of 128 bits, nobody can find a value by trial. swift-crypto has no such function, and that of the
/// standard library has a key of its own in each process.
struct SipHash: Sendable {
  private let key: (UInt64, UInt64)

  /// - Parameter key: At least 16 bytes, of which the first 16 count.
  init(key: [UInt8]) {
    invariant(key.count >= 16, "a key of fewer than 16 bytes")
    self.key = key.withUnsafeBytes { (Self.word($0, at: 0), Self.word($0, at: 8)) }
  }

  /// The hash of these bytes.
  func digest(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    var state = State(key)
    let whole = bytes.count & ~7
    for offset in stride(from: 0, to: whole, by: 8) { state.absorb(Self.word(bytes, at: offset)) }
    var last = UInt64(truncatingIfNeeded: bytes.count) << 56
    for offset in whole..<bytes.count { last |= UInt64(bytes[offset]) << (8 * (offset - whole)) }
    state.absorb(last)
    return state.end()
  }

  private static func word(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  private struct State {
    private var (v0, v1, v2, v3): (UInt64, UInt64, UInt64, UInt64)

    init(_ key: (UInt64, UInt64)) {
      (v0, v1) = (key.0 ^ 0x736f_6d65_7073_6575, key.1 ^ 0x646f_7261_6e64_6f6d)
      (v2, v3) = (key.0 ^ 0x6c79_6765_6e65_7261, key.1 ^ 0x7465_6462_7974_6573)
    }

    mutating func absorb(_ word: UInt64) {
      v3 ^= word
      round()
      round()
      v0 ^= word
    }

    mutating func end() -> UInt64 {
      v2 ^= 0xFF
      for _ in 0..<4 { round() }
      return v0 ^ v1 ^ v2 ^ v3
    }

    private mutating func round() {
      v0 &+= v1
      v1 = Self.rotated(v1, 13) ^ v0
      v0 = Self.rotated(v0, 32)
      v2 &+= v3
      v3 = Self.rotated(v3, 16) ^ v2
      v0 &+= v3
      v3 = Self.rotated(v3, 21) ^ v0
      v2 &+= v1
      v1 = Self.rotated(v1, 17) ^ v2
      v2 = Self.rotated(v2, 32)
    }

    private static func rotated(_ word: UInt64, _ bits: UInt64) -> UInt64 {
      word &<< bits | word &>> (64 - bits)
    }
  }
}

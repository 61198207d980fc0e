/// Bytes as a gzip file (RFC 1952) of stored blocks: a content coding without a compressor.
enum Gzip {
  /// The maximum size of a stored block (RFC 1951, section 3.2.4).
  private static let maxBlock = 65535

  static func stored(_ bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
    var rest = bytes[...]
    repeat {
      let block = rest.prefix(maxBlock)
      rest = rest.dropFirst(maxBlock)
      let length = UInt16(block.count)
      result += [rest.isEmpty ? 1 : 0] + littleEndian(length) + littleEndian(~length) + block
    } while !rest.isEmpty
    return result + littleEndian(checksum(bytes)) + littleEndian(UInt32(truncatingIfNeeded: bytes.count))
  }

  private static func littleEndian(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.littleEndian) { Array($0) }
  }

  /// CRC-32, bit by bit: a body is summed once.
  static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
    ~bytes.reduce(UInt32.max) { sum, byte in
      (0..<8).reduce(sum ^ UInt32(byte)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1
      }
    }
  }
}

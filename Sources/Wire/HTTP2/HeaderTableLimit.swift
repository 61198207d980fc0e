import NIOCore

/// Lowers a peer's SETTINGS_HEADER_TABLE_SIZE on its way to the codec, which would follow it to any size.
///
/// The setting permits the sender of fields a table of up to that size (RFC 7541, section 4.2). The codec fills all of
/// it and searches it field by field, so that a peer would decide how much memory and time its connection takes.
///
/// Follows the frames through reads that divide them anywhere, and changes bytes in place.
public struct HeaderTableLimit: Sendable {
  /// The size that every peer begins with, in bytes (RFC 9113, section 6.5.2).
  public static let maxBytes: UInt32 = 4096

  private static let headBytes = 9
  private static let entryBytes = 6
  private static let settingsKind: UInt64 = 4
  private static let headerTableSize: UInt64 = 1

  /// The number of bytes that are still to be passed over: the preface, or the payload of a frame without interest.
  private var skipped: Int
  /// The number of bytes of SETTINGS that are still to come; 0 outside of SETTINGS.
  private var settingsLeft = 0
  /// The bytes so far of a frame's head or of an entry of SETTINGS, and their number.
  private var word: UInt64 = 0
  private var count = 0
  /// Whether the entry's value has proved too large, so that its further bytes are replaced.
  private var isTooLarge = false

  /// - Parameter prefaceBytes: The number of bytes before the first frame.
  public init(prefaceBytes: Int) { skipped = prefaceBytes }

  /// Lowers the setting in the bytes, which follow those of the call before.
  public mutating func apply(to bytes: inout ByteBuffer) {
    var at = bytes.readerIndex
    while at < bytes.writerIndex {
      if skipped > 0 {
        let passed = min(skipped, bytes.writerIndex - at)
        skipped -= passed
        at += passed
        continue
      }
      guard let byte = bytes.getInteger(at: at, as: UInt8.self) else { return }
      if settingsLeft > 0 {
        let lowered = takeSetting(byte)
        if lowered != byte { bytes.setInteger(lowered, at: at) }
      } else {
        takeHead(byte)
      }
      at += 1
    }
  }

  private mutating func takeHead(_ byte: UInt8) {
    // The stream does not matter, so that its bytes may fall out of the word.
    if count < 5 { word = word << 8 | UInt64(byte) }
    count += 1
    guard count == Self.headBytes else { return }
    let (length, kind, isAck) = (Int(word >> 16), word >> 8 & 0xFF, word & 1 == 1)
    (word, count) = (0, 0)
    if kind == Self.settingsKind, !isAck { settingsLeft = length } else { skipped = length }
  }

  /// Returns the byte that replaces one of SETTINGS.
  private mutating func takeSetting(_ byte: UInt8) -> UInt8 {
    word = word << 8 | UInt64(byte)
    count += 1
    settingsLeft -= 1
    defer {
      if count == Self.entryBytes || settingsLeft == 0 { (word, count, isTooLarge) = (0, 0, false) }
    }
    let (number, valueBytes) = (word >> UInt64(8 * max(count - 2, 0)), count - 2)
    guard valueBytes > 0, number == Self.headerTableSize else { return byte }
    // The value so far is compared with the same number of bytes of the limit, the most significant first.
    let shift = UInt32(8 * (4 - valueBytes))
    if word & (1 << UInt64(8 * valueBytes) - 1) > UInt64(Self.maxBytes >> shift) { isTooLarge = true }
    return isTooLarge ? UInt8(truncatingIfNeeded: Self.maxBytes >> shift) : byte
  }
}

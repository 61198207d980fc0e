import NIOCore

/// Holds back the beginning of an HTTP/2 frame until all of it has arrived.
///
/// The codec keeps every byte that it has read while a read ends within a frame: a peer each of whose writes ends there
/// would make its buffer grow with all that it sends, up to the 4 GiB at which the process stops. A body's piece is a
/// slice of that buffer. So the codec gets whole frames, in pieces that its buffer takes without much growth.
///
/// DATA alone is passed on as it arrives, unless it is padded: a slow peer's body makes progress with each of its bytes,
/// and the codec keeps none of them.
///
/// It calls nobody: what the codec does with a piece may read the socket again, and so append to what is held.
public struct WholeFrames: Sendable {
  /// The largest payload of a frame, in bytes (RFC 9113, section 4.2). Semel never announces more.
  private static let maxPayload = 16 << 10
  /// The largest number of frames in a piece.
  public static let maxFrames = 8
  private static let headBytes = 9
  private static let data: UInt8 = 0
  private static let padded: UInt8 = 8

  /// The bytes that have arrived, and were not passed on yet.
  private var bytes = ByteBuffer()
  /// The number of bytes before the next frame that are passed on as they arrive: of the preface, or of DATA.
  private var passing: Int
  /// Whether a frame is larger than any may be. The codec ends the connection for its head.
  private var isBroken = false

  /// - Parameter prefaceBytes: The number of bytes before the first frame.
  public init(prefaceBytes: Int) { passing = prefaceBytes }

  /// The number of bytes that are held.
  public var heldBytes: Int { bytes.readableBytes }

  /// The memory of what is held, in bytes.
  var heldCapacity: Int { bytes.storageCapacity }

  /// Takes bytes that have arrived.
  public mutating func append(_ more: ByteBuffer) { bytes.follow(with: more) }

  /// Returns the next piece for the codec: whole frames, `maxFrames` and somewhat more than `maxPayload` at most; `nil`
  /// until more has arrived.
  public mutating func next() -> ByteBuffer? {
    var end = bytes.readerIndex
    var frames = 0
    while frames < Self.maxFrames, end - bytes.readerIndex < Self.maxPayload, let next = self.end(from: end) {
      end = next
      frames += 1
    }
    guard end > bytes.readerIndex else {
      bytes = bytes.compact
      return nil
    }
    return bytes.readSlice(length: end - bytes.readerIndex)
  }

  /// The end of the next frame, or of what may be passed on of it; `nil` if nothing may.
  private mutating func end(from start: Int) -> Int? {
    guard start < bytes.writerIndex else { return nil }
    if isBroken { return bytes.writerIndex }
    if passing > 0 {
      let count = min(passing, bytes.writerIndex - start)
      passing -= count
      return start + count
    }
    guard let word = bytes.getInteger(at: start, as: UInt32.self), start + Self.headBytes <= bytes.writerIndex
    else { return nil }
    let length = Int(word >> 8)
    if length > Self.maxPayload {
      isBroken = true
      return bytes.writerIndex
    }
    let end = start + Self.headBytes + length
    if end <= bytes.writerIndex { return end }
    let flags = bytes.getInteger(at: start + 4, as: UInt8.self) ?? 0
    guard UInt8(truncatingIfNeeded: word) == Self.data, flags & Self.padded == 0 else { return nil }
    passing = end - bytes.writerIndex
    return bytes.writerIndex
  }
}

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

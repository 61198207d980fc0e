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

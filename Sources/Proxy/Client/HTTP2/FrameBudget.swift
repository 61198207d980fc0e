import NIOCore

/// The types of HTTP/2 frames that are distinguished between the codec and the socket (RFC 9113, section 6).
enum FrameKind {
  static let data: UInt8 = 0
  static let headers: UInt8 = 1
  static let resetStream: UInt8 = 3
  static let settings: UInt8 = 4
  static let ping: UInt8 = 6
  static let goAway: UInt8 = 7
  static let continuation: UInt8 = 9
}

/// The budget of one connection for frames that advance no request: WINDOW_UPDATE, SETTINGS, PING, PRIORITY,
/// PRIORITY_UPDATE, ALTSVC, ORIGIN, GOAWAY and those of unknown types. Each costs time of the event loop, and the codec
/// bounds only some of them.
///
/// Clients send such frames about the frames that they get and about the requests that they make: both give credit.
/// Beyond its credit a client may send `max` at once, and so many again within 30 s. DATA, HEADERS, CONTINUATION and
/// RST_STREAM are free here: they belong to requests, and the codec bounds those that do not. Pure: time comes in.
struct FrameBudget {
  private static let window = TimeAmount.seconds(30)
  /// A WINDOW_UPDATE for the stream and one for the connection.
  private static let creditOfFrame = 2
  /// Clients that read in pieces announce a large frame in several parts; those of Go announce at least 4 KiB at once,
  /// in one frame for the stream and one for the connection.
  private static let bytesOfCredit = 2 << 10
  /// PRIORITY_UPDATE (RFC 9218), PRIORITY, and WINDOW_UPDATEs that open the window of the new stream.
  private static let creditOfRequest = 4
  /// The credit for 80 MiB that a client got and has not read yet.
  private static let maxCredit = 50_000

  private let max: Int
  private var credit = 0
  private var left: Double
  private var filledAt: NIODeadline?

  /// - Parameter max: The number of frames beyond the credit.
  init(max: Int) {
    self.max = max
    left = Double(max)
  }

  /// Credits a frame of DATA or HEADERS that was sent, with a payload of `bytes` bytes.
  mutating func sent(_ bytes: Int) { add(Self.creditOfFrame + bytes / Self.bytesOfCredit) }

  /// Counts a frame of this type that came. Returns whether it may be handled.
  mutating func take(_ kind: UInt8, now: NIODeadline) -> Bool {
    switch kind {
    case FrameKind.headers:
      add(Self.creditOfRequest)
      return true
    case FrameKind.data, FrameKind.continuation, FrameKind.resetStream: return true
    default: return takeOverhead(now)
    }
  }

  private mutating func takeOverhead(_ now: NIODeadline) -> Bool {
    if credit > 0 {
      credit -= 1
      return true
    }
    fill(now)
    guard left >= 1 else { return false }
    left -= 1
    return true
  }

  private mutating func fill(_ now: NIODeadline) {
    let passed = filledAt.map { (now - $0).nanoseconds } ?? 0
    filledAt = now
    left = min(left + Double(passed) / Double(Self.window.nanoseconds) * Double(max), Double(max))
  }

  private mutating func add(_ more: Int) { credit = min(credit + more, Self.maxCredit) }
}

/// The largest read from a connection, by the frames of the read before.
///
/// All frames of a read are handled in one turn of the event loop. A DATA frame of one byte costs about as much as one
/// of 16 KiB, so that 64 KiB of such frames would delay all other connections for as long as hundreds of requests.
/// Smaller reads let the others take their turns; they cost a client of many small messages next to nothing.
struct ReadLimit {
  static let full = 64 << 10
  static let small = 4 << 10
  private static let manyFrames = 512
  private static let fewFrames = 32

  private(set) var bytes = full

  /// Returns whether the limit changes after a read in which `frames` frames began.
  mutating func changes(after frames: Int) -> Bool {
    let before = bytes
    if frames >= Self.manyFrames { bytes = Self.small }
    if frames < Self.fewFrames { bytes = Self.full }
    return bytes != before
  }
}

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
  /// A WINDOW_UPDATE for the stream and one for the connection.
  private static let creditOfFrame = 2
  /// Clients that read in pieces announce a large frame in several parts; those of Go announce at least 4 KiB at once,
  /// in one frame for the stream and one for the connection.
  private static let bytesOfCredit = 2 << 10
  /// PRIORITY_UPDATE (RFC 9218), PRIORITY, and WINDOW_UPDATEs that open the window of the new stream.
  private static let creditOfRequest = 4
  /// The credit for 80 MiB that a client got and has not read yet.
  private static let maxCredit = 50_000

  private var credit = 0
  private var allowance: Allowance

  /// - Parameter max: The number of frames beyond the credit.
  init(max: Int) { allowance = Allowance(max) }

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
    return allowance.take(now)
  }

  private mutating func add(_ more: Int) { credit = min(credit + more, Self.maxCredit) }
}

/// A number of things that a connection may do at once, and again within 30 s. Pure: time comes in.
struct Allowance {
  /// The time in which it is full again.
  static let window = TimeAmount.seconds(30)

  private let max: Double
  private var left: Double
  private var filledAt: NIODeadline?

  /// - Parameter initial: The number at the beginning, where it is larger than `max`.
  init(_ max: Int, initial: Int = 0) {
    self.max = Double(max)
    left = Double(Swift.max(max, initial))
  }

  /// Takes one. False if none is left.
  mutating func take(_ now: NIODeadline) -> Bool {
    let passed = filledAt.map { (now - $0).nanoseconds } ?? 0
    filledAt = now
    let filled = min(left + Double(passed) / Double(Self.window.nanoseconds) * max, max)
    left = Swift.max(left, filled)
    guard left >= 1 else { return false }
    left -= 1
    return true
  }
}

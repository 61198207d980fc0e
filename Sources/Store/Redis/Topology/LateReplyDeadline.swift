import Idempotency
import Platform

/// Judges the deadline of a reply whose timer has fired. Pure. After a stall of this process, timers fire before the
/// socket is read: such a deadline proves nothing, so the connection is read once before it is given up.
struct LateReplyDeadline {
  enum Verdict: Equatable {
    case over
    case readUntil(BootInstant)
  }

  static let tolerance = Milliseconds(Lateness.tolerance)
  static let grace = Milliseconds(Lateness.replyGrace)
  /// The maximum number of consecutive reads without a reply, for a dead Redis on a busy loop.
  static let maxReadings = 5

  private var readings = 0

  /// Returns whether the deadline is over, which should have fired at `due`.
  mutating func verdict(due: BootInstant, now: BootInstant, hasUnread: Bool) -> Verdict {
    guard hasUnread || now - due > Self.tolerance, readings < Self.maxReadings else {
      readings = 0
      return .over
    }
    readings += 1
    return .readUntil(now + Self.grace)
  }

  mutating func hasRead() { readings = 0 }
}

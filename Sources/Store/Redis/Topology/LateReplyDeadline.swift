import Idempotency
import Platform

/// Judges the deadline of a reply whose timer has fired. Pure.
///
/// After a stall of this process (a costly task, a stopped machine), timers fire before the socket is read: a reply
/// that arrived in time may still be in the socket's buffer, and a command of the stalled turn was only just written.
/// Such a deadline proves nothing about Redis, so the connection is read once before it is given up.
struct LateReplyDeadline {
  enum Verdict: Equatable {
    /// Redis has been silent for the whole time.
    case over
    /// Inconclusive: read until then, and judge again.
    case readUntil(BootInstant)
  }

  /// The delay from which a timer counts as held up.
  static let tolerance = Milliseconds(Lateness.tolerance)
  /// The duration of a read.
  static let grace = Milliseconds(Lateness.replyGrace)
  /// The maximum number of consecutive reads without a reply, so that a dead Redis is also detected on a busy loop.
  static let maxReadings = 5

  private var readings = 0

  /// Returns whether the deadline is over.
  ///
  /// - Parameters:
  ///   - due: The time at which the timer should have fired.
  ///   - now: The present time.
  ///   - hasUnread: Whether bytes wait in the socket.
  mutating func verdict(due: BootInstant, now: BootInstant, hasUnread: Bool) -> Verdict {
    guard hasUnread || now - due > Self.tolerance, readings < Self.maxReadings else {
      readings = 0
      return .over
    }
    readings += 1
    return .readUntil(now + Self.grace)
  }

  /// Resets the number of reads, because a reply was read.
  mutating func hasRead() { readings = 0 }
}

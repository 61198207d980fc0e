import Idempotency

/// Judges a deadline of a reply whose timer has fired. Pure.
///
/// After a stall of this process (a costly task, a stopped machine) timers fire before the socket is read: a reply that
/// came in time then lies in its buffer, and a command of the stalled turn was only just written. Such a deadline says
/// nothing of Redis, so the connection is read once before it is given up.
struct RedisPatience {
  enum Verdict: Equatable {
    /// Redis has been silent for the whole time.
    case over
    /// Not proved: read until then, and judge again.
    case readUntil(BootInstant)
  }

  /// A timer that fires this late was held up. The loop's own timers come up to two ticks of 10 ms late.
  static let tolerance: Milliseconds = 50
  /// The time that a reading gets: many times what Redis takes for a command.
  static let grace: Milliseconds = 100
  /// The number of readings in a row that may find nothing, so that a dead Redis is found under a busy loop, too.
  static let maxReadings = 5

  private var readings = 0

  /// - Parameters:
  ///   - due: The instant at which the timer should have fired.
  ///   - hasUnread: Whether bytes wait in the socket.
  mutating func judge(due: BootInstant, now: BootInstant, hasUnread: Bool) -> Verdict {
    guard hasUnread || now - due > Self.tolerance, readings < Self.maxReadings else {
      readings = 0
      return .over
    }
    readings += 1
    return .readUntil(now + Self.grace)
  }

  /// A reply was read.
  mutating func hasRead() { readings = 0 }
}

import Idempotency
import NIOCore

/// A deadline that is conclusive about the peer once it is over.
///
/// If it is checked late, because the process stood still, it is extended once, so that data that has arrived in the
/// meantime is read before the peer is blamed.
public struct LateDeadline: Sendable {
  private var deadline: NIODeadline
  private var hasBeenPutOff = false

  /// Creates a deadline that passes after `span` milliseconds.
  public init(in span: Int64, now: NIODeadline = .now()) {
    deadline = now + .milliseconds(span)
  }

  /// The time left, in milliseconds; zero or negative once the deadline has passed.
  public func left(now: NIODeadline = .now()) -> Int64 { Milliseconds(deadline - now).count }

  /// Whether the deadline is over, after a possible extension. Call it when a wait until the deadline has ended without
  /// its event.
  public mutating func isOver(now: NIODeadline = .now()) -> Bool {
    if now - deadline > .milliseconds(Lateness.tolerance), !hasBeenPutOff {
      hasBeenPutOff = true
      deadline = now + .milliseconds(Lateness.uploadGrace)
    }
    return now >= deadline
  }
}

/// The delays from which a time-out proves nothing about its peer, because the process stood still or its loop was
/// busy, and the time to read what has arrived meanwhile. All in milliseconds.
public enum Lateness {
  /// The delay from which a check counts as late. The loop's own timers fire up to two ticks of 10 ms late.
  public static let tolerance: Int64 = 50
  /// The time to read one reply: many times what its sender took for it.
  public static let replyGrace: Int64 = 100
  /// The time to read what waits on all sockets of a loop.
  public static let uploadGrace: Int64 = 1000
}

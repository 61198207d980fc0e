import NIOCore

/// A deadline that proves something when it has passed: one that is looked at late, since the process stood still, is
/// put off once, so that what has arrived meanwhile is read before anybody is blamed for it.
public struct LateDeadline: Sendable {
  /// More than this after the deadline, the loop was kept from looking.
  static let tolerance = TimeAmount.milliseconds(100)
  /// Time enough to read what waits on all sockets.
  static let grace = TimeAmount.seconds(1)

  private var deadline: NIODeadline
  private var hasBeenPutOff = false

  public init(in span: Int64, now: NIODeadline = .now()) {
    deadline = now + .milliseconds(span)
  }

  /// The milliseconds that are left; none or fewer once it has passed.
  public func left(now: NIODeadline = .now()) -> Int64 { (deadline - now).nanoseconds / 1_000_000 }

  /// Whether it has passed for good. Called when a wait until then has ended without its event.
  public mutating func isOver(now: NIODeadline = .now()) -> Bool {
    if now - deadline > Self.tolerance, !hasBeenPutOff {
      hasBeenPutOff = true
      deadline = now + Self.grace
    }
    return now >= deadline
  }
}

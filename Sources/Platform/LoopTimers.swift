import NIOCore

/// The coarse timers of one event loop, for time-outs and renewals: exact to ten milliseconds, at a cost of a few
/// nanoseconds each.
///
/// After a stall of the process (a debugger, a pause of the machine), the timers fire only after the loop has read its
/// sockets again: a late timer proves nothing about a peer whose bytes were not read yet.
///
/// Confined to its loop, which it wakes when a timer is due, and once shortly before: who was kept from running for long
/// notices it there.
public final class LoopTimers: @unchecked Sendable {
  public typealias Token = TimerWheel<() -> Void>.Token

  /// The precision of a timer, which fires up to one tick late.
  public static let tick: TimeAmount = .milliseconds(10)
  /// The time to read what has arrived during a stall, before a peer's time-out fires: one turn of the loop reads it,
  /// and each time-out may wait for longer by itself.
  private static let catchingUp: TimeAmount = .milliseconds(20)

  /// The loop's next call.
  private struct Turn {
    let at: NIODeadline
    let call: Scheduled<Void>
    /// The delay from which it counts as late.
    let tolerance: TimeAmount
  }

  private let loop: any EventLoop
  let executor: LoopExecutor
  private var wheel: TimerWheel<() -> Void>
  /// `nil` only while no timer runs, or inside a turn.
  private var next: Turn?
  private var isCatchingUp = false

  public init(executor: LoopExecutor) {
    self.executor = executor
    loop = executor.loop
    wheel = TimerWheel(now: Self.ticks(NIODeadline.now()))
  }

  /// Starts a timer that calls `fire` on the loop after the given time, unless it is stopped before.
  public func start(milliseconds: Int64, _ fire: @escaping () -> Void) -> Token {
    loop.assertInEventLoop()
    let now = NIODeadline.now()
    if wheel.count == 0 { _ = wheel.advance(to: Self.ticks(now)) }
    let span = min(max(milliseconds, 0), 1 << 40) &* 1_000_000
    // Rounded up, plus one for the tick that has begun, so that no timer fires early.
    let tick = Self.ticks(now + .nanoseconds(span)) + 1
    let token = wheel.start(at: tick, fire)
    if !isCatchingUp { turn(for: tick, now) }
    return token
  }

  /// Stops a timer. Does nothing if it has fired or was stopped before.
  public func stop(_ token: Token) {
    loop.assertInEventLoop()
    wheel.stop(token)
  }

  /// Stops a debug build that calls from another thread.
  public func assertOnLoop() { loop.assertInEventLoop() }

  private static func ticks(_ instant: NIODeadline) -> Int64 {
    Int64(instant.uptimeNanoseconds) / tick.nanoseconds
  }

  /// Has the loop call in time for what is due at a tick.
  ///
  /// A stall can end just before that, when nothing is late yet and nothing is read: the call shortly before is late then.
  private func turn(for tick: Int64, _ now: NIODeadline) {
    let due = NIODeadline.uptimeNanoseconds(UInt64(max(tick, 0)) &* UInt64(Self.tick.nanoseconds))
    let look = due - Self.catchingUp
    if look > now {
      turn(at: look, tolerance: Self.tick)
    } else {
      turn(at: due, tolerance: .milliseconds(Lateness.tolerance))
    }
  }

  private func turn(at instant: NIODeadline, tolerance: TimeAmount) {
    if let next {
      if next.at <= instant { return }
      next.call.cancel()
    }
    let call = loop.scheduleTask(deadline: instant) { self.turned() }
    next = Turn(at: instant, call: call, tolerance: tolerance)
  }

  private func turned() {
    let now = NIODeadline.now()
    let isLate = next.map { now - $0.at > $0.tolerance } ?? false
    next = nil
    isCatchingUp = !isCatchingUp && isLate
    // The loop reads its sockets in between.
    if isCatchingUp { return turn(at: now + Self.catchingUp, tolerance: .milliseconds(Lateness.tolerance)) }
    // One at a time, since one that fires may stop another that is due.
    for token in wheel.advance(to: Self.ticks(now)) {
      if let fire = wheel.take(token) { fire() }
    }
    if let tick = wheel.next { turn(for: tick, now) }
    executor.drain()
  }
}

import NIOCore

/// The coarse timers of one event loop, for time-outs and renewals: exact to ten milliseconds, at a cost of a few
/// nanoseconds each.
///
/// After a stall of the process (a debugger, a pause of the machine), the timers fire only after the loop has read its
/// sockets again: a late timer proves nothing about a peer whose bytes were not read yet.
///
/// Confined to its loop. The wheel turns only while a timer runs.
public final class LoopTimers: @unchecked Sendable {
  public typealias Token = TimerWheel<() -> Void>.Token

  /// The precision of a timer, which fires up to one tick late.
  public static let tick: TimeAmount = .milliseconds(10)
  /// The time to read what has arrived during a stall, before a peer's time-out fires: one turn of the loop reads it,
  /// and each time-out may wait for longer by itself.
  private static let catchingUp: TimeAmount = .milliseconds(20)

  private let loop: any EventLoop
  let executor: LoopExecutor
  private var wheel: TimerWheel<() -> Void>
  private var isTurning = false
  /// The time of the wheel's next turn.
  private var turnAt = NIODeadline.distantFuture
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
    turn()
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

  private func turn(in span: TimeAmount = tick) {
    guard !isTurning else { return }
    isTurning = true
    turnAt = .now() + span
    loop.scheduleTask(deadline: turnAt) { self.turned() }
  }

  private func turned() {
    isTurning = false
    let now = NIODeadline.now()
    isCatchingUp = !isCatchingUp && now - turnAt > .milliseconds(Lateness.tolerance)
    // The loop reads its sockets in between.
    if isCatchingUp { return turn(in: Self.catchingUp) }
    // One at a time, since one that fires may stop another that is due.
    for token in wheel.advance(to: Self.ticks(now)) {
      if let fire = wheel.take(token) { fire() }
    }
    if wheel.count > 0 { turn() }
    executor.drain()
  }
}

import NIOCore

/// The coarse timers of one event loop: time-outs and renewals, ten milliseconds exact, for a few nanoseconds each.
///
/// Confined to its loop. The wheel turns only while a timer runs.
public final class LoopTimers: @unchecked Sendable {
  public typealias Token = TimerWheel<() -> Void>.Token

  /// How exact a timer is: it fires up to one tick late.
  public static let tick: TimeAmount = .milliseconds(10)

  private let loop: any EventLoop
  private let executor: LoopExecutor
  private var wheel: TimerWheel<() -> Void>
  private var isTurning = false

  public init(executor: LoopExecutor) {
    self.executor = executor
    loop = executor.loop
    wheel = TimerWheel(now: Self.ticks(NIODeadline.now()))
  }

  /// Calls `fire` on the loop once the span is over, unless it is stopped before.
  public func start(milliseconds: Int64, _ fire: @escaping () -> Void) -> Token {
    loop.assertInEventLoop()
    let now = NIODeadline.now()
    if wheel.count == 0 { _ = wheel.advance(to: Self.ticks(now)) }
    let span = min(max(milliseconds, 0), 1 << 40) &* 1_000_000
    // Rounded up, and one more for the tick that has begun: never early.
    let tick = Self.ticks(now + .nanoseconds(span)) + 1
    let token = wheel.start(at: tick, fire)
    turn()
    return token
  }

  /// Stops a timer; one that fired or was stopped before is left alone.
  public func stop(_ token: Token) {
    loop.assertInEventLoop()
    wheel.stop(token)
  }

  private static func ticks(_ instant: NIODeadline) -> Int64 {
    Int64(instant.uptimeNanoseconds) / tick.nanoseconds
  }

  private func turn() {
    guard !isTurning else { return }
    isTurning = true
    loop.scheduleTask(in: Self.tick) { self.turned() }
  }

  private func turned() {
    isTurning = false
    for fire in wheel.advance(to: Self.ticks(NIODeadline.now())) { fire() }
    if wheel.count > 0 { turn() }
    executor.drain()
  }
}

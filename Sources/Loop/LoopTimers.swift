import NIOCore

/// The coarse timers of one event loop: time-outs and renewals, ten milliseconds exact, for a few nanoseconds each.
///
/// After a stall of the process (a debugger, a pause of the machine) they fire once the loop has looked at its sockets
/// again: a late timer proves nothing about a peer whose bytes nobody has read.
///
/// Confined to its loop. The wheel turns only while a timer runs.
public final class LoopTimers: @unchecked Sendable {
  public typealias Token = TimerWheel<() -> Void>.Token

  /// How exact a timer is: it fires up to one tick late.
  public static let tick: TimeAmount = .milliseconds(10)
  /// A turn that is later than this finds out nothing about a peer: the process stood still.
  private static let stall: TimeAmount = .milliseconds(100)
  /// Time to read what has arrived meanwhile, before anybody is given up for not having sent it.
  private static let catchingUp: TimeAmount = .milliseconds(20)

  private let loop: any EventLoop
  private let executor: LoopExecutor
  private var wheel: TimerWheel<() -> Void>
  private var isTurning = false
  /// When the wheel is to be turned next.
  private var turnAt = NIODeadline.distantFuture
  private var isCatchingUp = false

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

  private func turn(in span: TimeAmount = tick) {
    guard !isTurning else { return }
    isTurning = true
    turnAt = .now() + span
    loop.scheduleTask(deadline: turnAt) { self.turned() }
  }

  private func turned() {
    isTurning = false
    let now = NIODeadline.now()
    isCatchingUp = !isCatchingUp && now - turnAt > Self.stall
    // The loop looks at its sockets in between.
    if isCatchingUp { return turn(in: Self.catchingUp) }
    for fire in wheel.advance(to: Self.ticks(now)) { fire() }
    if wheel.count > 0 { turn() }
    executor.drain()
  }
}

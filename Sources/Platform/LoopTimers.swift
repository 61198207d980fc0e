import Idempotency
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

/// A hashed wheel of coarse timers, each of which is started and stopped in constant time.
///
/// Pure: time comes in as a number of ticks. A timer is due at the first `advance` that reaches its tick, never before.
public struct TimerWheel<Payload> {
  /// The identity of one timer, which is never used again for another.
  public struct Token: Hashable, Sendable {
    fileprivate var slot: Int32
    fileprivate var generation: UInt32
  }

  private struct Entry {
    var payload: Payload?
    var tick: Int64
    var generation: UInt32
    var previous: Int32
    var next: Int32
  }

  private static var none: Int32 { -1 }

  private var entries: [Entry] = []
  private var free: [Int32] = []
  /// The first entry of each bucket's list.
  private var buckets: [Int32]
  private let mask: Int64
  private(set) public var now: Int64
  private(set) public var count = 0

  /// Creates a wheel.
  ///
  /// - Parameters:
  ///   - now: The present tick.
  ///   - buckets: The number of buckets, a power of two. Timers further ahead than this many ticks share buckets with
  ///     nearer ones.
  public init(now: Int64, buckets: Int = 1024) {
    precondition(
      buckets > 0 && buckets & (buckets - 1) == 0, "TimerWheel: \(buckets) buckets are no power of two")
    self.buckets = Array(repeating: Self.none, count: buckets)
    self.now = now
    mask = Int64(buckets - 1)
  }

  /// Starts a timer that fires at `tick`, or at the next tick if that one has passed.
  public mutating func start(at tick: Int64, _ payload: Payload) -> Token {
    let tick = max(tick, now + 1)
    let slot: Int32
    if let reused = free.popLast() {
      slot = reused
    } else {
      slot = Int32(entries.count)
      entries.append(Entry(payload: nil, tick: 0, generation: 0, previous: Self.none, next: Self.none))
    }
    let bucket = Int(tick & mask)
    let head = buckets[bucket]
    entries[Int(slot)].payload = payload
    entries[Int(slot)].tick = tick
    entries[Int(slot)].previous = Self.none
    entries[Int(slot)].next = head
    if head != Self.none { entries[Int(head)].previous = slot }
    buckets[bucket] = slot
    count += 1
    return Token(slot: slot, generation: entries[Int(slot)].generation)
  }

  /// Stops a timer. Does nothing if it was taken or stopped before.
  public mutating func stop(_ token: Token) {
    if isRunning(token) { _ = remove(token.slot) }
  }

  /// Advances the time and returns the timers that are due, bucket by bucket. Each of them can still be stopped until
  /// it is taken.
  public mutating func advance(to tick: Int64) -> [Token] {
    guard tick > now else { return [] }
    guard count > 0 else {
      now = tick
      return []
    }
    var due: [Token] = []
    // After a long pause, one pass over all buckets finds every timer.
    let first = max(now + 1, tick - mask)
    for step in first...tick {
      var slot = buckets[Int(step & mask)]
      while slot != Self.none {
        let entry = entries[Int(slot)]
        if entry.tick <= tick { due.append(Token(slot: slot, generation: entry.generation)) }
        slot = entry.next
      }
    }
    now = tick
    return due
  }

  /// The first tick at which a timer may be due, at most one round of the wheel ahead; `nil` without timers.
  public var next: Int64? {
    guard count > 0 else { return nil }
    let end = now + mask
    return ((now + 1)..<end).first { buckets[Int($0 & mask)] != Self.none } ?? end
  }

  /// Removes a timer that is due, and returns its payload; `nil` if it was stopped meanwhile.
  public mutating func take(_ token: Token) -> Payload? { isRunning(token) ? remove(token.slot) : nil }

  private func isRunning(_ token: Token) -> Bool {
    Int(token.slot) < entries.count && entries[Int(token.slot)].generation == token.generation
  }

  private mutating func remove(_ slot: Int32) -> Payload? {
    let entry = entries[Int(slot)]
    if entry.previous != Self.none {
      entries[Int(entry.previous)].next = entry.next
    } else {
      buckets[Int(entry.tick & mask)] = entry.next
    }
    if entry.next != Self.none { entries[Int(entry.next)].previous = entry.previous }
    entries[Int(slot)].payload = nil
    entries[Int(slot)].generation &+= 1
    free.append(slot)
    count -= 1
    return entry.payload
  }
}

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

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

import Glibc
import Idempotency
import NIOCore

/// The wall clock, which may be set at any time. No lease and no expiry depends on it alone.
public enum WallClock {
  /// The nanoseconds since 1970.
  public static func nanoseconds() -> Int64 { nanosecondsOf(CLOCK_REALTIME) }

  /// The whole milliseconds since 1970.
  public static func milliseconds() -> Int64 { nanoseconds() / 1_000_000 }

  /// The whole seconds since 1970.
  public static func seconds() -> Int { Int(nanoseconds() / 1_000_000_000) }
}

extension BootInstant {
  /// The present time by the boot-time clock, which also advances while the machine sleeps and while the process is
  /// stopped.
  public static var now: BootInstant { BootInstant(nanoseconds: nanosecondsOf(CLOCK_BOOTTIME)) }
}

/// The CPU time that all threads of this process have taken, in nanoseconds.
public func processTimeNanoseconds() -> Int64 { nanosecondsOf(CLOCK_PROCESS_CPUTIME_ID) }

private func nanosecondsOf(_ clock: clockid_t) -> Int64 {
  var time = timespec()
  clock_gettime(clock, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

extension Milliseconds {
  /// The whole milliseconds of a span, rounded towards zero.
  public init(_ span: TimeAmount) { self.init(span.nanoseconds / 1_000_000) }
}

/// Random numbers of the system, fetched for many at a time: one system call for each would cost more than what needs
/// it. Two clones of a running machine return the same ones until each has used up what it had fetched.
public struct Entropy {
  /// The time for which `fresh` uses what was fetched, in nanoseconds: a millisecond, far less than a clone takes.
  private static let freshness: Int64 = 1_000_000

  private var words: [UInt64]
  /// The number of words that were not returned yet.
  private var left = 0
  /// The time of the last fetch for `fresh`.
  private var fetchedAt = Int64.min / 2

  /// - Parameter count: The number of words that are fetched at a time, from 2 to 32.
  public init(count: Int = 32) { words = Array(repeating: 0, count: count) }

  /// Returns a random number that was never returned before.
  public mutating func next() -> UInt64 {
    if left == 0 { refill() }
    left -= 1
    return words[left]
  }

  /// Returns two random numbers that the system has made within the last millisecond: two clones of a running machine
  /// return the same ones no longer than that.
  ///
  /// - Parameter now: By a clock that is never set, in nanoseconds.
  public mutating func fresh(now: Int64) -> (UInt64, UInt64) {
    if left < 2 || now - fetchedAt > Self.freshness {
      refill()
      fetchedAt = now
    }
    return (next(), next())
  }

  private mutating func refill() {
    words.withUnsafeMutableBytes { bytes in
      let failed = getentropy(bytes.baseAddress, bytes.count)
      precondition(failed == 0, "Entropy: the system gives no random numbers (errno \(errno))")
    }
    left = words.count
  }
}

/// The pace of log entries about events that may come often: one entry a minute for each key, with the number of events
/// since the last one.
public struct LogPace<Key: Hashable & Sendable>: Sendable {
  private struct Entry {
    var unlogged = 0
    var loggedAt: NIODeadline?
  }

  private let interval: TimeAmount
  private var entries: [Key: Entry] = [:]

  public init(interval: TimeAmount = .minutes(1)) { self.interval = interval }

  /// Counts an event.
  ///
  /// - Returns: The number of events since the last log entry, this one included, if another entry is due.
  public mutating func count(_ key: Key, at now: NIODeadline) -> Int? {
    var entry = entries[key, default: Entry()]
    defer { entries[key] = entry }
    entry.unlogged += 1
    if let last = entry.loggedAt, now - last < interval { return nil }
    defer { entry.unlogged = 0 }
    entry.loggedAt = now
    return entry.unlogged
  }
}

/// A map of bounded size that forgets what was written longest ago.
///
/// Entries age in two halves: an entry is written into the younger one, and when that is full the older one is dropped.
public struct AgingMap<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let half: Int
  private let isKept: (@Sendable (Value) -> Bool)?
  private var young: [Key: Value] = [:]
  private var old: [Key: Value] = [:]
  private var turnsAt: Int

  /// Creates an empty map.
  ///
  /// - Parameters:
  ///   - half: The number of entries in each half, at least one.
  ///   - isKept: Whether an old entry is kept all the same. As many of them as there are make the map larger.
  public init(half: Int, keeping isKept: (@Sendable (Value) -> Bool)? = nil) {
    precondition(half > 0, "AgingMap: a half without entries")
    self.half = half
    self.isKept = isKept
    turnsAt = half
  }

  public var count: Int { young.count + old.count }

  public subscript(key: Key) -> Value? {
    get { young[key] ?? old[key] }
    set {
      old[key] = nil
      young[key] = newValue
      if young.count >= turnsAt { turn() }
    }
  }

  private mutating func turn() {
    let retained = isKept.map { isKept in old.filter { isKept($0.value) } } ?? [:]
    old = young
    young = retained
    turnsAt = max(half, 2 * retained.count)
  }
}

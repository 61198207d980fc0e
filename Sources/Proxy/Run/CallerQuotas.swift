import Idempotency
import NIOCore
import Platform
import Synchronization
import Wire

/// The requests in flight and the new keys of each caller of this process.
///
/// Callers are known by a hash that is keyed anew in each process: two that share one share a quota, in one case of
/// 2^64.
final class CallerQuotas: Sendable {
  /// The number of callers whose new keys are remembered before those with a full quota are forgotten.
  private static let sweptCallers = 1 << 14

  private struct NewKeys {
    /// The time at which each caller's quota is full again, in nanoseconds of the boot-time clock.
    var fullAt: [Int: Int64] = [:]
    /// The rate by which they were computed; a new one begins with full quotas.
    var rate: KeyRate?
    var sweepAt = CallerQuotas.sweptCallers
  }

  private let inFlight = Mutex<[Int: Int]>([:])
  private let newKeys = Mutex(NewKeys())

  init() {}

  /// Counts a request in flight; false if its caller has too many.
  func enter(_ caller: Int, max: Int) -> Bool {
    inFlight.withLock { inFlight in
      guard let entry = inFlight.index(forKey: caller) else {
        guard max > 0 else { return false }
        inFlight[caller] = 1
        return true
      }
      invariant(inFlight.values[entry] > 0, "a quota counts a caller without requests")
      guard inFlight.values[entry] < max else { return false }
      inFlight.values[entry] += 1
      return true
    }
  }

  /// Counts the further items of a batch, which itself was counted; false if its caller has too many. A batch is never
  /// too large beside none.
  func enter(items: Int, of caller: Int, max: Int) -> Bool {
    invariant(items >= 0, "a batch has fewer items than one")
    return inFlight.withLock { inFlight in
      guard let count = inFlight[caller], count <= 1 || count + items <= max else { return false }
      inFlight[caller] = count + items
      return true
    }
  }

  /// Ends a request that was counted, with the further items of a batch.
  func leave(_ caller: Int, items: Int = 0) {
    inFlight.withLock { inFlight in
      guard let entry = inFlight.index(forKey: caller) else {
        invariantBroken("a request ends that its caller's quota does not count")
      }
      invariant(inFlight.values[entry] > items, "more items end than their caller's quota counts")
      if inFlight.values[entry] > 1 + items {
        inFlight.values[entry] -= 1 + items
      } else {
        inFlight.remove(at: entry)
      }
    }
  }

  /// Counts a new key.
  ///
  /// - Returns: The time until the caller may use another one, if it may use none now.
  func refusal(ofNewKeyBy caller: Int, at rate: KeyRate, now: BootInstant) -> Milliseconds? {
    newKeys.withLock { keys in
      if keys.rate != rate {
        keys.fullAt = [:]
        keys.rate = rate
      }
      if keys.fullAt.count >= keys.sweepAt {
        keys.fullAt = keys.fullAt.filter { $0.value > now.nanoseconds }
        keys.sweepAt = max(Self.sweptCallers, keys.fullAt.count * 2)
      }
      let (fullAt, wait) = rate.take(fullAt: keys.fullAt[caller] ?? 0, now: now.nanoseconds)
      keys.fullAt[caller] = fullAt
      return wait
    }
  }
}

/// The routes of which something was logged that is logged once for each.
final class NotedRoutes: Sendable {
  private let numbers = Mutex<Set<Int>>([])

  /// Notes a route, and returns whether it is noted for the first time.
  func isFirst(_ number: Int) -> Bool { numbers.withLock { $0.insert(number).inserted } }
}

/// The pace at which events of routes are logged: once a minute for each route.
final class RoutePace: Sendable {
  private let routes = Mutex(LogPace<Int>())

  /// Counts an event.
  ///
  /// - Parameter number: The number of its route; 0 for none.
  /// - Returns: The events since the last log entry, this one included, where another entry is due.
  func count(_ number: Int, at now: NIODeadline) -> Int? {
    routes.withLock { $0.count(number, at: now) }
  }
}

import Idempotency
import Synchronization
import Wire

/// The quarter of `limits.body_memory` that only captured responses take, for all event loops.
///
/// Once a backend has run a request, a response that finds no room is lost to every retry. Room must therefore be
/// certain before the claim. Uploads and unread responses of other clients cannot take it: they have the other three
/// quarters (`memory(forOthers:)`). A claim reserves what a typical response needs, and is refused once three quarters
/// of the share are taken, so that room is left for the larger responses of the claims that were granted. With the
/// defaults that is more than all requests in flight reserve: 4096 × 8 KiB = 32 MiB of 64 MiB.
///
/// A response that outgrows its reservation takes the rest step by step, and waits a moment where there is none: a
/// capture lasts no longer than its backend sends and the store writes. A connection or a caller that captures more
/// than an eighth of the share (or one larger response) takes no more than the first half of it. So one client leaves
/// the second half to the others.
///
/// Outcomes that wait for an unavailable store take at most half of the share, however long they wait.
public final class CaptureShare: Sendable {
  /// The bytes that each claim reserves. Most responses are no larger.
  public static let reservation = 8 << 10

  private let total = Atomic<Int>(0)
  /// The bytes of outcomes that wait for the store, which belong to `total`.
  private let waiting = Atomic<Int>(0)
  /// The bytes beyond their reservations, by caller.
  private let callers = Mutex<[Int: Int]>([:])

  public init() {}

  /// The bytes of the share.
  static func size(of memory: Int) -> Int { memory / 4 }

  /// The bytes that requests, and responses that wait for their clients, may take of the memory.
  static func memory(forOthers memory: Int) -> Int { memory - size(of: memory) }

  /// The bytes of responses that wait for their clients at which no further replay begins.
  static func memory(forUnread memory: Int) -> Int { memory / 2 }

  /// The bytes beyond which one connection or one caller has the first half of the share only.
  static func part(of memory: Int) -> Int { size(of: memory) / 8 }

  /// The bytes that are taken.
  public var taken: Int { total.load(ordering: .relaxed) }

  /// Reserves room for the response of a request that is about to be claimed; false if there is none.
  public func reserve(of memory: Int) -> Bool {
    add(Self.reservation, upTo: Self.size(of: memory) / 4 * 3)
  }

  public func giveReservation() { give(Self.reservation) }

  private func give(_ count: Int) {
    let left = total.subtract(count, ordering: .relaxed).newValue
    invariant(left >= 0, "more room for responses is given back than was taken")
  }

  /// Takes room for a response beyond its reservation; false if there is none.
  ///
  /// - Parameters:
  ///   - own: The bytes that the response has taken this way before.
  ///   - isWithinPart: Whether its connection holds no more than its part.
  public func grow(by count: Int, beside own: Int, caller: Int, isWithinPart: Bool, of memory: Int) -> Bool {
    callers.withLock { callers in
      let held = callers[caller, default: 0]
      let isWithinPart = isWithinPart && (held == own || held + count <= Self.part(of: memory))
      let share = Self.size(of: memory)
      guard add(count, upTo: isWithinPart ? share : share / 2) else { return false }
      callers[caller] = held + count
      return true
    }
  }

  public func shrink(by count: Int, caller: Int) {
    give(count)
    callers.withLock { callers in
      let held = callers[caller, default: 0] - count
      invariant(held >= 0, "a caller gives back more room for responses than it holds")
      callers[caller] = held > 0 ? held : nil
    }
  }

  /// Takes room for an outcome that waits for the store; false if there is none. Half of the share stays free for new
  /// claims, which are still made while the store refuses only some writes.
  public func holdOutcome(_ count: Int, of memory: Int) -> Bool {
    let size = Self.size(of: memory)
    guard waiting.add(count, ordering: .relaxed).newValue <= size / 2, add(count, upTo: size) else {
      waiting.subtract(count, ordering: .relaxed)
      return false
    }
    return true
  }

  /// Gives back the room of an outcome that waits no more.
  public func releaseOutcome(_ count: Int) {
    let left = waiting.subtract(count, ordering: .relaxed).newValue
    invariant(left >= 0, "more room for outcomes is given back than was taken")
    give(count)
  }

  private func add(_ count: Int, upTo limit: Int) -> Bool {
    guard total.add(count, ordering: .relaxed).newValue > limit else { return true }
    total.subtract(count, ordering: .relaxed)
    return false
  }
}

import Synchronization
import Wire

/// The one whose part of a budget it is.
enum MemoryHolder: Hashable {
  case address(String)
  /// A connection; for what waits one that is no single client's, such as a trusted proxy's or one of a Unix socket.
  case connection(ObjectIdentifier)
  /// A caller, by its hash.
  case caller(Int)
}

/// A number of bytes or of requests, of which each holder has a part, for all event loops.
final class HolderBudget: Sendable {
  /// The amounts that may be taken.
  struct Bounds {
    /// By all holders.
    let all: Int
    /// By all of them while one that holds more than little takes more.
    let beforeLittle: Int
    /// By one holder.
    let holder: Int
    /// By one holder that holds little.
    let little: Int
  }

  private let total = Atomic<Int>(0)
  private let parts = Mutex<[MemoryHolder: Int]>([:])

  /// The amount that is taken.
  var taken: Int { total.load(ordering: .relaxed) }

  /// Adds to the parts of holders; false, and nothing added, if that would exceed a bound. A body or a head is useless
  /// in part: the only one of its holders may be as large as the bound of all.
  ///
  /// - Parameter own: The amount that the same body or head has taken before.
  func take(_ count: Int, of holders: MemoryHolder..., beside own: Int = 0, within bounds: Bounds) -> Bool {
    invariant(count >= 0, "a holder takes less than nothing")
    return parts.withLock { parts in
      var holdLittle = true
      for holder in holders {
        let held = parts[holder, default: 0]
        guard held == own || held + count <= bounds.holder else { return false }
        holdLittle = holdLittle && (held == own || held + count <= bounds.little)
      }
      guard add(count, upTo: holdLittle ? bounds.all : bounds.beforeLittle) else { return false }
      for holder in holders { parts[holder, default: 0] += count }
      return true
    }
  }

  /// Adds to the part of a holder regardless of the bounds.
  func force(_ count: Int, of holder: MemoryHolder) {
    total.add(count, ordering: .relaxed)
    parts.withLock { $0[holder, default: 0] += count }
  }

  func give(_ count: Int, of holders: MemoryHolder...) {
    subtract(count)
    parts.withLock { parts in
      for holder in holders {
        let left = parts[holder, default: 0] - count
        invariant(left >= 0, "a holder gives back more than its part")
        parts[holder] = left > 0 ? left : nil
      }
    }
  }

  /// Adds an amount that is no holder's; false, and nothing added, if more than `limit` would be taken.
  func add(_ count: Int, upTo limit: Int) -> Bool {
    guard total.add(count, ordering: .relaxed).newValue > limit else { return true }
    total.subtract(count, ordering: .relaxed)
    return false
  }

  func subtract(_ count: Int) {
    let left = total.subtract(count, ordering: .relaxed).newValue
    invariant(left >= 0, "more is given back than was taken")
  }
}

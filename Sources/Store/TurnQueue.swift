import NIOCore
import Wire

/// Decides which large values are on their way to or from a store, and which wait. Pure.
///
/// All that are on their way have no more bytes than the budget, and those of one caller no more than half of it; a single
/// value may be larger than either. Callers take turns, so that one with many large values delays its own.
struct TurnQueue {
  /// A value that is on its way or waits.
  struct Place: Hashable {
    fileprivate let number: Int
    /// The number of its caller.
    fileprivate let caller: Int
    fileprivate let bytes: Int
  }

  private let budget: Int
  private var lastNumber = 0
  private var bytesUnderWay = 0
  /// The bytes under way of each caller that has some.
  private var bytesOfCallers: [Int: Int] = [:]
  private var waiting: [Int: CircularBuffer<Place>] = [:]
  /// The callers of those that wait, the one whose turn is next first.
  private var callers: CircularBuffer<Int> = []

  init(budget: Int) { self.budget = budget }

  /// Whether nothing is on its way.
  var isEmpty: Bool { bytesUnderWay == 0 && callers.isEmpty }

  /// Adds a value. It waits until `takeNext` returns its place.
  mutating func enter(caller: Int, bytes: Int) -> Place {
    lastNumber += 1
    let place = Place(number: lastNumber, caller: caller, bytes: max(1, bytes))
    if waiting[caller] == nil { callers.append(caller) }
    waiting[caller, default: []].append(place)
    return place
  }

  /// Returns the next value that may begin; `nil` if none may now. `end` must follow for it.
  mutating func takeNext() -> Place? {
    for _ in 0..<callers.count {
      guard let caller = callers.first, let place = waiting[caller]?.first else { return nil }
      // It is the first in turn: those behind it must not use up what it waits for.
      guard bytesUnderWay == 0 || bytesUnderWay + place.bytes <= budget else { return nil }
      callers.removeFirst()
      guard mayBegin(place) else {
        callers.append(caller)
        continue
      }
      waiting[caller]?.removeFirst()
      if waiting[caller]?.isEmpty == true { waiting[caller] = nil } else { callers.append(caller) }
      bytesUnderWay += place.bytes
      bytesOfCallers[caller, default: 0] += place.bytes
      invariant(bytesUnderWay <= max(budget, place.bytes), "more bytes are under way than the budget allows")
      return place
    }
    return nil
  }

  private func mayBegin(_ place: Place) -> Bool {
    guard let own = bytesOfCallers[place.caller] else { return true }
    return own + place.bytes <= budget / 2
  }

  /// Takes the end of a value that was on its way.
  mutating func end(_ place: Place) {
    bytesUnderWay -= place.bytes
    let left = bytesOfCallers[place.caller, default: 0] - place.bytes
    invariant(bytesUnderWay >= 0 && left >= 0, "a turn ends that has not begun")
    invariant(left <= bytesUnderWay, "a caller has more under way than all")
    bytesOfCallers[place.caller] = left > 0 ? left : nil
  }

  /// Removes a value that waits no longer.
  mutating func leave(_ place: Place) {
    waiting[place.caller]?.removeAll { $0 == place }
    guard waiting[place.caller]?.isEmpty == true else { return }
    waiting[place.caller] = nil
    callers.removeAll { $0 == place.caller }
  }
}

import NIOCore
import Wire

/// Decides which large values are on their way to or from a store, and which wait. Pure. They have no more bytes than
/// the budget, those of one caller half of it; a single value may be larger. Callers take turns.
struct TurnQueue {
  struct Place: Hashable {
    fileprivate let number: Int
    fileprivate let caller: Int
    fileprivate let bytes: Int
  }

  private let budget: Int
  private var lastNumber = 0
  private var bytesUnderWay = 0
  private var bytesOfCallers: [Int: Int] = [:]
  private var waiting: [Int: CircularBuffer<Place>] = [:]
  private var callers: CircularBuffer<Int> = []

  init(budget: Int) { self.budget = budget }

  var isEmpty: Bool { bytesUnderWay == 0 && callers.isEmpty }

  /// Adds a value, which waits until `takeNext` returns its place.
  mutating func enter(caller: Int, bytes: Int) -> Place {
    lastNumber += 1
    let place = Place(number: lastNumber, caller: caller, bytes: max(1, bytes))
    if waiting[caller] == nil { callers.append(caller) }
    waiting[caller, default: []].append(place)
    return place
  }

  /// Returns the next value that may begin. `end` must follow for it.
  mutating func takeNext() -> Place? {
    for _ in 0..<callers.count {
      guard let caller = callers.first, let place = waiting[caller]?.first else { return nil }
      // Those behind the first in turn must not use up what it waits for.
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

  mutating func end(_ place: Place) {
    bytesUnderWay -= place.bytes
    let left = bytesOfCallers[place.caller, default: 0] - place.bytes
    invariant(bytesUnderWay >= 0 && left >= 0, "a turn ends that has not begun")
    invariant(left <= bytesUnderWay, "a caller has more under way than all")
    bytesOfCallers[place.caller] = left > 0 ? left : nil
  }

  mutating func leave(_ place: Place) {
    waiting[place.caller]?.removeAll { $0 == place }
    guard waiting[place.caller]?.isEmpty == true else { return }
    waiting[place.caller] = nil
    callers.removeAll { $0 == place.caller }
  }
}

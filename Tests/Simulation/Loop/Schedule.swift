/// The events of a world, one after the other in its time: whatever happens in it is one of them.
///
/// Confined to the one thread of its world, like everything in it, hence `@unchecked Sendable`.
final class Schedule: @unchecked Sendable {
  private struct Event: Comparable {
    let at: Moment
    /// Decides between events of one moment: by chance, then by their number.
    let order: UInt64
    /// The place of its act among `acts`.
    let place: Int

    static func < (left: Event, right: Event) -> Bool {
      left.at.nanoseconds != right.at.nanoseconds
        ? left.at.nanoseconds < right.at.nanoseconds : left.order < right.order
    }
  }

  private(set) var now = Moment.start
  var dice: Dice
  /// The number of events so far.
  private(set) var count = 0
  /// The rolling hash of the schedule: what happened, when and in which order. Equal seeds have equal hashes.
  private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
  private var events = Heap<Event>()
  private var acts: [(() -> Void)?] = []
  private var freePlaces: [Int] = []
  private var number: UInt64 = 0

  init(seed: UInt64) { dice = Dice(seed, "schedule") }

  func at(_ moment: Moment, _ act: @escaping () -> Void) {
    number += 1
    let order = dice.next() & 0xFFFF_0000_0000_0000 | number
    let place = freePlaces.popLast() ?? acts.count
    if place == acts.count { acts.append(act) } else { acts[place] = act }
    events.insert(Event(at: max(moment, now), order: order, place: place))
  }

  func after(_ span: Span, _ act: @escaping () -> Void) { at(now + span, act) }

  /// Adds something that has happened to the hash.
  func note(_ value: Int) { hash = (hash ^ UInt64(truncatingIfNeeded: value)) &* 0x100_0000_01B3 }

  /// Lets the next event happen; false if there is none before a moment.
  func step(until end: Moment) -> Bool {
    guard let first = events.first, first.at <= end else {
      now = max(now, end)
      return false
    }
    _ = events.removeFirst()
    now = first.at
    count += 1
    note(Int(first.at.nanoseconds))
    let act = acts[first.place]
    acts[first.place] = nil
    freePlaces.append(first.place)
    act?()
    return true
  }

  /// Forgets what has not happened yet.
  func clear() {
    Graves.bury(acts)
    events.removeAll()
    acts.removeAll()
    freePlaces.removeAll()
  }
}

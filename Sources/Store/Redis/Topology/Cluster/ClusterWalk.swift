import Wire

/// A place in a walk over the keys of all masters. Pure.
///
/// A step reads some keys of one master, whatever their slots. As long as the slot map stays the same, each master is
/// walked once, in the order of their first slots. From a change on, each run of neighbouring slots of one master
/// counts by itself, and a master is walked once for each of its runs that are left: no slot is missed, and records may
/// be found several times. A record is missed that moves to a master walked before, if the map changes too late.
///
/// All slots below the place's are done. The slot rises with each master or run, so that the walk ends.
///
/// The text is `SLOT/MASTER/CURSOR/MAP` with the digest of the map, and `SLOT-LAST/MASTER/CURSOR` for a run. A cursor
/// is valid on the node that returned it only.
struct ClusterWalk: Equatable {
  private enum Scope: Equatable {
    /// All of the master's slots, by the map of this digest. May be followed by a run.
    case master(digest: String)
    /// The slots up to this one. Followed by runs only.
    case run(last: Int)
  }

  private let slot: Int
  private let master: String
  let cursor: String
  private let scope: Scope

  private init(_ slot: Int, _ master: String, cursor: String = "0", _ scope: Scope) {
    self.slot = slot
    self.master = master
    self.cursor = cursor
    self.scope = scope
  }

  init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard 3...4 ~= parts.count, let slots = Self.slots(parts[0]), !parts[1].isEmpty,
      parts[2].utf8.allSatisfy({ 0x30...0x39 ~= $0 }), UInt64(parts[2]) != nil
    else { return nil }
    slot = slots.lowerBound
    master = String(parts[1])
    cursor = String(parts[2])
    guard parts.count == 4 else {
      scope = .run(last: slots.upperBound)
      return
    }
    guard slots.count == 1, parts[3].utf8.count == SlotMap.digestLength, UInt64(parts[3], radix: 16) != nil
    else { return nil }
    scope = .master(digest: String(parts[3]))
  }

  /// Reads `SLOT-LAST`, or `SLOT` for one slot, as an earlier version wrote it.
  private static func slots(_ text: Substring) -> ClosedRange<Int>? {
    let ends = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = Int(ends[0]), let last = Int(ends[ends.count - 1]), 0 <= first, first <= last,
      last < SlotMap.slotCount
    else { return nil }
    return first...last
  }

  var text: String {
    switch scope {
    case .master(let digest): "\(slot)/\(master)/\(cursor)/\(digest)"
    case .run(let last): "\(slot)-\(last)/\(master)/\(cursor)"
    }
  }

  /// The place of the next step, and the master that it reads; `nil` if the walk has ended.
  static func step(
    _ walk: ClusterWalk?, in map: SlotMap
  ) -> (place: ClusterWalk, master: ServerAddress)? {
    guard let walk else {
      return map.firstSlots.first.map { first in
        (
          place: ClusterWalk(first.slot, "\(first.master)", .master(digest: map.digest)),
          master: first.master
        )
      }
    }
    guard let master = map[walk.slot], "\(master)" == walk.master, walk.isValid(in: map) else {
      return run(from: walk.slot, in: map)
    }
    return (walk, master)
  }

  private func isValid(in map: SlotMap) -> Bool {
    switch scope {
    case .master(let digest): digest == map.digest
    case .run: true
    }
  }

  /// The place after a step that has returned a cursor, by the map after it; `nil` if the walk has ended.
  func after(cursor next: String, in map: SlotMap) -> ClusterWalk? {
    guard next == "0" else { return ClusterWalk(slot, master, cursor: next, scope) }
    switch scope {
    case .master where isValid(in: map):
      return map.firstSlots.first { $0.slot > slot }.map { ClusterWalk($0.slot, "\($0.master)", scope) }
    case .master: return Self.run(from: slot, in: map)?.place
    case .run(let last): return Self.run(from: firstLeft(upTo: last, in: map), in: map)?.place
    }
  }

  /// The first slot that the walk over a run has not done: one that its master has no longer, or the one after the run.
  private func firstLeft(upTo last: Int, in map: SlotMap) -> Int {
    guard let present = map.run(from: slot), present.slots.lowerBound == slot, "\(present.master)" == master
    else { return slot }
    return min(present.slots.upperBound, last) + 1
  }

  /// The beginning of the first run at a slot or after it.
  private static func run(
    from slot: Int, in map: SlotMap
  ) -> (place: ClusterWalk, master: ServerAddress)? {
    map.run(from: slot).map { run in
      (
        place: ClusterWalk(run.slots.lowerBound, "\(run.master)", .run(last: run.slots.upperBound)),
        master: run.master
      )
    }
  }
}

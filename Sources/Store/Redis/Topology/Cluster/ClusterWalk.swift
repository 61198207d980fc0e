import Wire

/// A place in a walk over the keys of all masters, one after the other by their first slots. Pure.
///
/// Its text is `SLOT/MASTER/CURSOR`. A cursor is valid on the node that returned it only: where another node has taken
/// over the slots, the walk begins there again.
struct ClusterWalk: Equatable {
  private let slot: Int
  private let master: String
  private let cursor: String

  /// Reads the text of a place; `nil` if it is none.
  init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 3, let slot = Int(parts[0]), 0..<SlotMap.slotCount ~= slot, !parts[1].isEmpty,
      parts[2].utf8.allSatisfy({ 0x30...0x39 ~= $0 }), UInt64(parts[2]) != nil
    else { return nil }
    self.slot = slot
    master = String(parts[1])
    cursor = String(parts[2])
  }

  private init(_ place: (slot: Int, master: ServerAddress), cursor: String = "0") {
    slot = place.slot
    master = "\(place.master)"
    self.cursor = cursor
  }

  var text: String { "\(slot)/\(master)/\(cursor)" }

  /// The master and the cursor of the next step; `nil` if the walk has ended.
  ///
  /// - Parameter walk: The place; `nil` at the beginning.
  static func step(_ walk: ClusterWalk?, in map: SlotMap) -> (master: ServerAddress, cursor: String)? {
    let places = map.firstSlots
    guard let walk else { return places.first.map { ($0.master, "0") } }
    guard let place = places.first(where: { $0.slot >= walk.slot }) else { return nil }
    return (place.master, "\(place.master)" == walk.master ? walk.cursor : "0")
  }

  /// The place after a step; `nil` if the walk has ended.
  static func after(_ master: ServerAddress, cursor: String, in map: SlotMap) -> ClusterWalk? {
    let places = map.firstSlots
    guard let index = places.firstIndex(where: { $0.master == master }) else { return nil }
    if cursor != "0" { return ClusterWalk(places[index], cursor: cursor) }
    return index + 1 < places.count ? ClusterWalk(places[index + 1]) : nil
  }
}

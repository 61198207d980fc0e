import Idempotency

/// The entries of one shard: an index over slots, and a clock hand that looks for what may go.
///
/// The hand goes round the slots: an entry that was used since it last came by is spared once (CLOCK, which
/// comes close to least recently used and costs a hit one written bit). Pure: what time it is comes in.
struct CacheSlots {
  private struct Slot {
    var id: RecordID
    var entry: CacheEntry
    var isUsed: Bool
  }

  private let capacityBytes: Int
  private var index: [RecordID: Int] = [:]
  /// Without holes: what is removed gives its place to the last.
  private var slots: [Slot] = []
  private var hand = 0
  private(set) var bytes = 0
  private(set) var evictions = 0

  init(capacityBytes: Int) { self.capacityBytes = capacityBytes }

  var count: Int { slots.count }

  /// The entry, marked as used; one that has expired is removed.
  mutating func use(_ id: RecordID, now: BootInstant) -> CacheEntry? {
    guard let place = index[id] else { return nil }
    guard !slots[place].entry.isExpired(now: now) else {
      remove(at: place)
      return nil
    }
    slots[place].isUsed = true
    return slots[place].entry
  }

  /// Puts an entry in, in the place of others where there is no room; one that can never fit is left out.
  mutating func put(_ id: RecordID, _ entry: CacheEntry) {
    remove(id)
    guard entry.bytes <= capacityBytes else { return }
    while bytes + entry.bytes > capacityBytes { evict() }
    index[id] = slots.count
    // Spared only once it is used: a crowd of records that nobody asks for again drives nothing out.
    slots.append(Slot(id: id, entry: entry, isUsed: false))
    bytes += entry.bytes
  }

  mutating func remove(_ id: RecordID) {
    if let place = index[id] { remove(at: place) }
  }

  mutating func removeAll() {
    index.removeAll()
    slots.removeAll()
    hand = 0
    bytes = 0
  }

  private mutating func remove(at place: Int) {
    bytes -= slots[place].entry.bytes
    index[slots[place].id] = nil
    let last = slots.removeLast()
    guard place < slots.count else { return }
    slots[place] = last
    index[last.id] = place
  }

  /// Removes the first entry under the hand that was not used since it last came by.
  private mutating func evict() {
    while true {
      if hand >= slots.count { hand = 0 }
      guard slots[hand].isUsed else { break }
      slots[hand].isUsed = false
      hand += 1
    }
    remove(at: hand)
    evictions += 1
  }
}

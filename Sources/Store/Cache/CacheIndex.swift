import Wire

/// The place of each record's entry in the log: a hash table with open addressing and linear probing. Its size is
/// fixed, so that it never pauses to grow. Pure.
struct CacheIndex {
  /// The slots: the hash in the upper half, and the place plus one in the lower half; 0 in an empty slot.
  private var words: [UInt64]
  private let mask: Int
  private(set) var count = 0

  /// - Parameter slots: Their number, a power of two.
  init(slots: Int) {
    invariant(slots > 0 && slots & (slots - 1) == 0, "the slots of an index are no power of two")
    words = Array(repeating: 0, count: slots)
    mask = slots - 1
  }

  /// Whether seven eighths of the slots are used, beyond which look-ups would take too long.
  var isFull: Bool { count >= words.count / 8 * 7 }

  func find(_ hash: UInt32, where isWanted: (_ place: UInt32) -> Bool) -> UInt32? {
    var slot = Int(hash) & mask
    while words[slot] != 0 {
      let place = UInt32(truncatingIfNeeded: words[slot] - 1)
      if UInt32(truncatingIfNeeded: words[slot] >> 32) == hash, isWanted(place) { return place }
      slot = (slot + 1) & mask
    }
    return nil
  }

  /// Adds a place. The index must not be full, and must not contain the place.
  mutating func insert(_ hash: UInt32, _ place: UInt32) {
    invariant(!isFull, "an entry is added to a full index")
    var slot = Int(hash) & mask
    while words[slot] != 0 { slot = (slot + 1) & mask }
    words[slot] = UInt64(hash) << 32 | UInt64(place) + 1
    count += 1
  }

  /// Removes a place, which the index must contain, and moves up the slots that were probed past it.
  mutating func remove(_ hash: UInt32, _ place: UInt32) {
    let word = UInt64(hash) << 32 | UInt64(place) + 1
    var hole = Int(hash) & mask
    while words[hole] != word {
      invariant(words[hole] != 0, "removed what is not there")
      hole = (hole + 1) & mask
    }
    var next = (hole + 1) & mask
    while words[next] != 0 {
      let home = Int(words[next] >> 32) & mask
      if (next - home) & mask >= (next - hole) & mask {
        words[hole] = words[next]
        hole = next
      }
      next = (next + 1) & mask
    }
    words[hole] = 0
    count -= 1
  }

  mutating func removeAll() {
    for slot in words.indices { words[slot] = 0 }
    count = 0
  }
}

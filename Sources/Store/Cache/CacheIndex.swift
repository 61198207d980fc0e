/// Where in the log each record's entry stands: open addressing with linear probing over words of a hash and a place.
///
/// Its size is fixed, so that it never stops to grow. Pure.
struct CacheIndex {
  /// The hash in the upper half, the place plus one in the lower; 0 where nothing stands.
  private var words: [UInt64]
  private let mask: Int
  private(set) var count = 0

  /// - Parameter slots: a power of two.
  init(slots: Int) {
    words = Array(repeating: 0, count: slots)
    mask = slots - 1
  }

  /// Beyond seven eighths a look-up walks too far.
  var isFull: Bool { count >= words.count / 8 * 7 }

  /// The place under this hash that is the one looked for.
  func find(_ hash: UInt32, where isWanted: (_ place: UInt32) -> Bool) -> UInt32? {
    var slot = Int(hash) & mask
    while words[slot] != 0 {
      let place = UInt32(truncatingIfNeeded: words[slot] - 1)
      if UInt32(truncatingIfNeeded: words[slot] >> 32) == hash, isWanted(place) { return place }
      slot = (slot + 1) & mask
    }
    return nil
  }

  /// Only while it is not full, and where the place is not in it yet.
  mutating func insert(_ hash: UInt32, _ place: UInt32) {
    precondition(!isFull)
    var slot = Int(hash) & mask
    while words[slot] != 0 { slot = (slot + 1) & mask }
    words[slot] = UInt64(hash) << 32 | UInt64(place) + 1
    count += 1
  }

  /// Takes a place out that is in it, and moves up what was put behind it because of it.
  mutating func remove(_ hash: UInt32, _ place: UInt32) {
    let word = UInt64(hash) << 32 | UInt64(place) + 1
    var hole = Int(hash) & mask
    while words[hole] != word {
      precondition(words[hole] != 0, "CacheIndex: removed what is not there")
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

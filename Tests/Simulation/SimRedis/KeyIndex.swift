/// The keys of a database in the order of a hash of their own, in which walks visit them.
///
/// The order is the same in every process, and a key keeps its place whatever else comes and goes.
struct KeyIndex {
  private typealias Place = (hash: UInt64, key: Bytes)

  private static let bucketBits: UInt64 = 8
  /// The places by the first bits of their hashes, each bucket in order.
  private var buckets: [[Place]] = Array(repeating: [], count: 1 << bucketBits)

  mutating func insert(_ key: Bytes) {
    let place = Self.place(of: key)
    let bucket = Self.bucket(of: place.hash)
    buckets[bucket].insert(place, at: Self.position(of: place, in: buckets[bucket]))
  }

  mutating func remove(_ key: Bytes) {
    let place = Self.place(of: key)
    let bucket = Self.bucket(of: place.hash)
    buckets[bucket].remove(at: Self.position(of: place, in: buckets[bucket]))
  }

  /// Returns the keys of one step, and the cursor of the next one, which is 0 at the end.
  func step(from cursor: UInt64, count: Int) -> (next: UInt64, keys: [Bytes]) {
    var (keys, last): ([Bytes], UInt64) = ([], 0)
    for bucket in buckets[Self.bucket(of: cursor)...] {
      for place in bucket where place.hash >= cursor {
        // Keys of one hash are visited together.
        if keys.count >= count, place.hash != last { return (place.hash, keys) }
        keys.append(place.key)
        last = place.hash
      }
    }
    return (0, keys)
  }

  private static func bucket(of hash: UInt64) -> Int { Int(hash >> (64 - bucketBits)) }

  /// The position at which a place is, or belongs.
  private static func position(of place: Place, in bucket: [Place]) -> Int {
    var (low, high) = (0, bucket.count)
    while low < high {
      let middle = (low + high) / 2
      let other = bucket[middle]
      let isBefore =
        other.hash != place.hash
        ? other.hash < place.hash : other.key.lexicographicallyPrecedes(place.key)
      if isBefore { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// FNV-1a with its bits mixed, so that the first ones differ; never 0, which is the beginning of a walk.
  private static func place(of key: Bytes) -> Place {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    key.withUnsafeBufferPointer { key in
      for byte in key { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    }
    return (max(hash ^ hash << 32, 1), key)
  }
}

import Idempotency
import NIOCore
import Wire

/// The entries of one shard, in a ring of memory in the order of their arrival, with an index. Not thread-safe.
///
/// Space is freed at the old end: nothing is searched for or allocated, and memory does not fragment. An entry that is
/// used when no longer young moves to the new end, so that masses of records that nobody requests displace none in use.
/// Large responses are stored likewise, so that the capacity limits all memory.
struct CacheLog: ~Copyable {
  /// The number of bytes per slot of the index. Entries are rarely smaller.
  private static let bytesPerSlot = 256
  /// The alignment of entries, in bytes.
  private static let unit = 32
  private static let maxRecipes = 256

  private let capacity: Int
  private var memory: UnsafeMutableRawPointer?
  private var index: CacheIndex
  /// The seed of the hash, so that clients that choose keys choose no slots.
  private let seed = UInt64.random(in: .min ... .max) | 1
  /// The numbers of bytes ever added and removed. Modulo `capacity` they are positions in the ring.
  private var head = 0
  private var tail = 0
  /// The end of the entries of the previous lap, before the ring's end; `nil` while there are none.
  private var lapEnd: Int?
  private var recipes: [Recipe] = []
  private(set) var evictions = 0

  init(capacityBytes: Int) {
    var slots = 16
    while slots * 2 * Self.bytesPerSlot <= capacityBytes { slots *= 2 }
    index = CacheIndex(slots: slots)
    let words = slots * MemoryLayout<UInt64>.stride
    capacity = max(0, capacityBytes - words) / Self.unit * Self.unit
  }

  deinit { memory?.deallocate() }

  static func rounded(_ bytes: Int) -> Int { (bytes + unit - 1) / unit * unit }

  var count: Int { index.count }
  /// The bytes in the ring. The index takes a fixed amount in addition.
  var bytes: Int { head - tail }

  /// Returns the outcome of a claim from the entry; `nil` if there is none. Removes an expired entry.
  mutating func use(
    _ id: RecordID, _ fingerprint: Fingerprint, before end: BootInstant = BootInstant(nanoseconds: .max),
    now: @autoclosure @Sendable () -> BootInstant
  ) -> ClaimOutcome? {
    guard let place = place(of: id) else { return nil }
    let now = now()
    guard now < end else { return nil }
    let entry = entry(at: place).pointee
    guard !entry.isExpired(now: now) else {
      remove(at: place)
      return nil
    }
    let recipe = recipes[Int(entry.recipe)]
    guard recipe == fingerprint.recipe.plain else { return .otherRecipe(recipe) }
    guard entry.digest == fingerprint.digest else {
      // Only the store has the digests that explain the difference.
      return fingerprint.recipe.members == nil ? .mismatch : nil
    }
    let record = CompletedRecord(
      outcome: entry.outcome(from: bytes(at: place)), recordedAt: entry.recordedAt,
      expiresAt: entry.expiresAt, remaining: entry.expiry - now, attempt: entry.attempt)
    if isOld(place, entry.length) { put(id, fingerprint, record, expiry: entry.expiry) }
    return .taken(.completed(record))
  }

  /// Adds an entry, dropping the oldest ones if there is no space. An entry larger than the ring is not added.
  mutating func put(
    _ id: RecordID, _ fingerprint: Fingerprint, _ record: CompletedRecord, expiry: BootInstant
  ) {
    remove(id)
    let entry = CacheEntry(
      id, fingerprint.digest, recipe: number(of: fingerprint.recipe.plain), record, expiry: expiry)
    guard entry.length <= capacity else { return }
    makeRoom(for: entry)
    invariant(head % Self.unit == 0, "an entry would begin between two places")
    invariant(head % capacity + entry.length <= capacity, "an entry would end beyond the ring")
    invariant(bytes + entry.length <= capacity, "an entry would begin on the oldest one")
    let place = UInt32(truncatingIfNeeded: head % capacity / Self.unit)
    start(of: place).initializeMemory(as: CacheEntry.self, to: entry)
    entry.write(record.outcome, to: bytes(at: place))
    index.insert(hash(id), place)
    head += entry.length
  }

  mutating func remove(_ id: RecordID) {
    if let place = place(of: id) { remove(at: place) }
  }

  mutating func removeAll() {
    index.removeAll()
    recipes.removeAll()
    (head, tail, lapEnd) = (0, 0, nil)
  }

  private func hash(_ id: RecordID) -> UInt32 {
    UInt32(truncatingIfNeeded: (id.digest.words[0] &* seed) >> 32)
  }

  private func place(of id: RecordID) -> UInt32? {
    index.find(hash(id)) { entry(at: $0).pointee.id == id }
  }

  private func start(of place: UInt32) -> UnsafeMutableRawPointer {
    guard let memory else { invariantBroken("nothing was put in yet") }
    return memory + Int(place) * Self.unit
  }

  private func entry(at place: UInt32) -> UnsafeMutablePointer<CacheEntry> {
    start(of: place).assumingMemoryBound(to: CacheEntry.self)
  }

  /// The bytes that follow the entry's head.
  private func bytes(at place: UInt32) -> UnsafeMutableRawPointer {
    UnsafeMutableRawPointer(entry(at: place) + 1)
  }

  /// Whether a quarter of the ring was written since the entry was.
  private func isOld(_ place: UInt32, _ length: Int) -> Bool {
    let distance = head % capacity - Int(place) * Self.unit
    return (distance < 0 ? distance + capacity : distance) > length + capacity / 4
  }

  private mutating func number(of recipe: Recipe) -> UInt8 {
    if let number = recipes.firstIndex(of: recipe) { return UInt8(number) }
    // Recipes come from the settings of routes. So many are reached only after as many reloads.
    if recipes.count == Self.maxRecipes { removeAll() }
    recipes.append(recipe)
    return UInt8(recipes.count - 1)
  }

  /// Drops the oldest entries until there is contiguous space for the entry.
  private mutating func makeRoom(for entry: CacheEntry) {
    if memory == nil {
      memory = .allocate(byteCount: capacity, alignment: Self.unit)
    }
    while true {
      let left = capacity - head % capacity
      let gap = left < entry.length ? left : 0
      if bytes + gap + entry.length <= capacity, !index.isFull {
        if gap > 0 {
          lapEnd = head % capacity
          head += gap
        }
        return
      }
      dropOldest()
      evictions += 1
      dropDead()
    }
  }

  private mutating func remove(at place: UInt32) {
    takeOut(place)
    dropDead()
  }

  private mutating func dropOldest() {
    invariant(tail < head, "the oldest entry of an empty ring is dropped")
    let place = UInt32(truncatingIfNeeded: tail % capacity / Self.unit)
    takeOut(place)
  }

  /// Removes an entry from the index. Its space is freed when it is the oldest.
  private mutating func takeOut(_ place: UInt32) {
    let entry = entry(at: place)
    index.remove(hash(entry.pointee.id), place)
    entry.pointee.isDead = true
  }

  /// Frees the space of removed entries, up to the oldest remaining one.
  private mutating func dropDead() {
    while tail < head {
      let offset = tail % capacity
      if offset == lapEnd {
        tail += capacity - offset
        lapEnd = nil
        continue
      }
      let oldest = entry(at: UInt32(truncatingIfNeeded: offset / Self.unit)).pointee
      guard oldest.isDead else { return }
      tail += oldest.length
    }
    invariant(tail == head && index.count == 0, "a ring is empty, and its index is not")
    // Empty: the ring starts over, in one piece.
    (head, tail, lapEnd) = (0, 0, nil)
  }
}

import Idempotency
import NIOCore

/// The entries of one shard, in a ring of memory in the order in which they came, and an index over them.
///
/// Room is made at the old end, so that nothing is searched for, nothing is allocated and memory does not fall to
/// pieces: with allocations for each entry a first run cost a fifth more. An entry that is used when it is no longer
/// young moves to the new end: what is asked for again stays, and a crowd of records that nobody asks for drives
/// nothing out that is. Large answers stand in it like small ones, so that its bound is all the memory it takes: a
/// replay of 200 KiB costs a tenth more than if they were shared. Not thread-safe; what time it is comes in.
struct CacheLog: ~Copyable {
  /// One slot of the index for so many bytes: entries are rarely smaller.
  private static let bytesPerSlot = 256
  /// Entries begin at multiples of it.
  private static let unit = 32
  private static let mostRecipes = 256

  private let capacity: Int
  private var memory: UnsafeMutableRawPointer?
  private var index: CacheIndex
  /// So that nobody who can choose keys can choose where they stand.
  private let seed = UInt64.random(in: .min ... .max) | 1
  /// How many bytes were ever put in, and how many of them are gone; modulo `capacity` they are places in the ring.
  private var head = 0
  private var tail = 0
  /// Where the entries before the ring's beginning end.
  private var lapEnd = 0
  /// Those that entries name by their numbers.
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
  /// Beside the index, which takes the same whatever it holds.
  var bytes: Int { head - tail }

  /// The answer of the entry to a claim; one that has expired is removed.
  mutating func use(_ id: RecordID, _ fingerprint: Fingerprint, now: BootInstant) -> ClaimOutcome? {
    guard let place = place(of: id) else { return nil }
    let entry = entry(at: place).pointee
    guard !entry.isExpired(now: now) else {
      remove(at: place)
      return nil
    }
    let recipe = recipes[Int(entry.recipe)]
    guard recipe == fingerprint.recipe else { return .otherRecipe(recipe) }
    guard entry.digest == fingerprint.digest else { return .mismatch }
    let record = CompletedRecord(
      outcome: entry.outcome(from: bytes(at: place)), recordedAt: entry.recordedAt,
      expiresAt: entry.expiresAt, remaining: entry.expiry - now, attempt: entry.attempt)
    if isOld(place, entry.length) { put(id, fingerprint, record, expiry: entry.expiry) }
    return .taken(.completed(record))
  }

  /// Puts an entry in, in the place of the oldest where there is no room; one that can never fit is left out.
  mutating func put(
    _ id: RecordID, _ fingerprint: Fingerprint, _ record: CompletedRecord, expiry: BootInstant
  ) {
    remove(id)
    let entry = CacheEntry(
      id, fingerprint.digest, recipe: number(of: fingerprint.recipe), record, expiry: expiry)
    guard entry.length <= capacity else { return }
    makeRoom(for: entry)
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
    (head, tail, lapEnd) = (0, 0, 0)
  }

  private func hash(_ id: RecordID) -> UInt32 {
    UInt32(truncatingIfNeeded: (id.digest.words[0] &* seed) >> 32)
  }

  private func place(of id: RecordID) -> UInt32? {
    index.find(hash(id)) { entry(at: $0).pointee.id == id }
  }

  private func start(of place: UInt32) -> UnsafeMutableRawPointer {
    guard let memory else { preconditionFailure("CacheLog: nothing was put in yet") }
    return memory + Int(place) * Self.unit
  }

  private func entry(at place: UInt32) -> UnsafeMutablePointer<CacheEntry> {
    start(of: place).assumingMemoryBound(to: CacheEntry.self)
  }

  /// What stands behind the entry's head.
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
    // Recipes come from the settings of routes: that many were only seen after as many reloads.
    if recipes.count == Self.mostRecipes { removeAll() }
    recipes.append(recipe)
    return UInt8(recipes.count - 1)
  }

  /// Drops the oldest until the entry fits in one piece where the next one begins.
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
    let place = UInt32(truncatingIfNeeded: tail % capacity / Self.unit)
    takeOut(place)
  }

  /// Out of the index; its room comes back when it is the oldest.
  private mutating func takeOut(_ place: UInt32) {
    let entry = entry(at: place)
    index.remove(hash(entry.pointee.id), place)
    entry.pointee.isDead = true
  }

  /// Takes back the room of what was removed, up to the oldest entry that lives.
  private mutating func dropDead() {
    while tail < head {
      let offset = tail % capacity
      if offset == lapEnd, lapEnd > 0 {
        tail += capacity - offset
        lapEnd = 0
        continue
      }
      let oldest = entry(at: UInt32(truncatingIfNeeded: offset / Self.unit)).pointee
      guard oldest.isDead else { return }
      tail += oldest.length
    }
    // Empty: the ring in one piece again.
    (head, tail, lapEnd) = (0, 0, 0)
  }
}

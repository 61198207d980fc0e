import Wire

/// Sorts names by their bytes, in time linear in the bytes of all names, whatever names a client chose.
///
/// A comparison takes time in proportion to the names' common prefix, and a comparison sort pays for that again and
/// again. Here, seven bytes of each name and the number of the bytes that are left make one integer. The names are
/// sorted by that integer, and those that share it by their next seven bytes. Equal names keep their order.
///
/// It must not be copied. It is copyable for the thread sanitizer alone, with which noncopyable structures that hold
/// buffers do not compile (https://github.com/swiftlang/swift/issues/86265).
struct NameOrder {
  /// A name, and a value that belongs to it. Sorting moves the whole entry, since looking the value up afterwards would
  /// miss the processor's cache once for each of up to a million names.
  struct Entry: BitwiseCopyable {
    fileprivate var key: UInt64
    /// The offset of the name in the memory of names; `inKey` for a name that its first key holds whole.
    fileprivate var start: UInt32
    fileprivate(set) var payload: UInt32

    fileprivate static let inKey = UInt32.max

    /// The name, if it is so short that its key holds it: its bytes from the highest on, and their number.
    var word: (bytes: UInt64, count: Int)? {
      start == Self.inKey ? (key & ~0xFF, Int(key & 0xFF)) : nil
    }
  }

  /// Adjacent entries whose names are equal up to a depth.
  private struct Group: BitwiseCopyable {
    var start: Int
    var end: Int
    var depth: Int
  }

  /// The number of a name's bytes that its key holds.
  ///
  /// The key's last byte counts the bytes that are left, so that a name comes before the names that it is a prefix of,
  /// even if these continue with a NUL.
  private static let step = 7
  /// The value of a key's last byte if the name continues after this key.
  private static let continuation: UInt64 = 8
  /// The maximum number of entries that are sorted by insertion, which is faster for so few than counting.
  private static let insertionBound = 32
  /// The number of bytes before a name that hold its length.
  private static let lengthSize = 4

  /// The names that do not fit into a key, each after its length.
  private let bytes: UnsafeMutableRawBufferPointer
  /// The end of the last name.
  private var end = 0
  private var entries: UnsafeMutableBufferPointer<Entry>
  private var spare: UnsafeMutableBufferPointer<Entry>
  private let counts: UnsafeMutableBufferPointer<UInt32>
  private(set) var count = 0
  /// The groups that are not sorted yet.
  private var pending: [Group] = []
  /// Whether no two names are equal. Valid after `sort`.
  private(set) var isUnique = true

  private init(
    _ bytes: UnsafeMutableRawBufferPointer, _ memory: UnsafeMutableBufferPointer<Entry>,
    _ counts: UnsafeMutableBufferPointer<UInt32>
  ) {
    self.bytes = bytes
    entries = UnsafeMutableBufferPointer(rebasing: memory[..<(memory.count / 2)])
    spare = UnsafeMutableBufferPointer(rebasing: memory[(memory.count / 2)...])
    self.counts = counts
  }

  /// Calls `body` with an empty order for at most `capacity` names of together at most `size` bytes.
  static func with<Result>(capacity: Int, size: Int, _ body: (inout NameOrder) -> Result) -> Result {
    // Only names of eight bytes and more have a length beside them. The last one may be a short one.
    let byteCount = size + size / (step + 1) * lengthSize + lengthSize + step
    return withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 1) { bytes in
      withUnsafeTemporaryAllocation(of: Entry.self, capacity: 2 * capacity) { memory in
        // The counts are needed for many names only, and are small enough for the stack.
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 256) { counts in
          var order = NameOrder(bytes, memory, counts)
          return body(&order)
        }
      }
    }
  }

  /// Appends a name that `decode` writes to memory at least as large as `size`, and whose length it returns.
  @inline(__always)
  mutating func append(_ payload: UInt32, _ decode: (UnsafeMutableRawBufferPointer) -> Int) {
    let start = end + Self.lengthSize
    let length = decode(UnsafeMutableRawBufferPointer(rebasing: bytes[start...]))
    guard length > Self.step else {
      var key = UInt64(length)
      for index in 0..<length { key |= UInt64(bytes[start + index]) << UInt64(56 - 8 * index) }
      append(Entry(key: key, start: Entry.inKey, payload: payload))
      return
    }
    bytes.storeBytes(of: UInt32(length), toByteOffset: end, as: UInt32.self)
    end = start + length
    invariant(end <= bytes.count, "names take more bytes than there is room for")
    append(Entry(key: longKey(at: start), start: UInt32(start), payload: payload))
  }

  /// Appends a name that needs no decoding; false for one that does not fit into a key.
  @inline(__always)
  mutating func append(_ payload: UInt32, short name: UnsafeRawBufferPointer, isPlain: (UInt8) -> Bool)
    -> Bool
  {
    guard name.count <= Self.step else { return false }
    var key = UInt64(name.count)
    for index in 0..<name.count {
      guard isPlain(name[index]) else { return false }
      key |= UInt64(name[index]) << UInt64(56 - 8 * index)
    }
    append(Entry(key: key, start: Entry.inKey, payload: payload))
    return true
  }

  @inline(__always)
  private mutating func append(_ entry: Entry) {
    invariant(count < entries.count, "more names are sorted than there is room for")
    entries[count] = entry
    count += 1
  }

  subscript(place: Int) -> Entry { entries[place] }

  /// The name of an entry that its key does not hold.
  func name(of entry: Entry) -> UnsafeRawBufferPointer {
    let start = Int(entry.start)
    return UnsafeRawBufferPointer(rebasing: bytes[start..<start + length(of: entry)])
  }

  mutating func sort() {
    guard count > 1 else { return }
    sort(Group(start: 0, end: count, depth: 0))
    while let group = pending.popLast() { sort(group) }
  }
}

extension NameOrder {
  private mutating func sort(_ group: Group) {
    if group.depth > 0 { readKeys(group) }
    let first = entries[group.start].key
    var differing: UInt64 = 0
    for index in group.start..<group.end { differing |= entries[index].key ^ first }
    if differing != 0 {
      if group.end - group.start <= Self.insertionBound {
        insert(group)
      } else {
        distribute(group, differing)
      }
    }
    split(group)
  }

  /// Reads the keys of names that continue at the group's depth.
  private func readKeys(_ group: Group) {
    for index in group.start..<group.end {
      let entry = entries[index]
      let start = Int(entry.start) + group.depth
      let left = length(of: entry) - group.depth
      guard left <= Self.step else {
        entries[index].key = longKey(at: start)
        continue
      }
      var key = UInt64(left)
      for index in 0..<left { key |= UInt64(bytes[start + index]) << UInt64(56 - 8 * index) }
      entries[index].key = key
    }
  }

  private func length(of entry: Entry) -> Int {
    Int(bytes.loadUnaligned(fromByteOffset: Int(entry.start) - Self.lengthSize, as: UInt32.self))
  }

  /// The key of a name that continues after it.
  private func longKey(at start: Int) -> UInt64 {
    UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self)) & ~0xFF | Self.continuation
  }

  private func insert(_ group: Group) {
    for index in group.start + 1..<group.end {
      let entry = entries[index]
      var place = index
      while place > group.start, entries[place - 1].key > entry.key {
        entries[place] = entries[place - 1]
        place -= 1
      }
      entries[place] = entry
    }
  }

  /// Sorts by one byte of the key after the other, the last byte first. Bytes that are the same in every key are
  /// skipped.
  private mutating func distribute(_ group: Group, _ differing: UInt64) {
    let own = UnsafeMutableBufferPointer(rebasing: entries[group.start..<group.end])
    var (source, target) = (own, UnsafeMutableBufferPointer(rebasing: spare[group.start..<group.end]))
    for shift in stride(from: 0 as UInt64, to: 64, by: 8) where differing >> shift & 0xFF != 0 {
      counts.initialize(repeating: 0)
      for index in 0..<source.count { counts[Int(source[index].key >> shift & 0xFF)] += 1 }
      var place: UInt32 = 0
      for byte in 0..<256 { (counts[byte], place) = (place, place + counts[byte]) }
      for index in 0..<source.count {
        let byte = Int(source[index].key >> shift & 0xFF)
        target[Int(counts[byte])] = source[index]
        counts[byte] += 1
      }
      swap(&source, &target)
    }
    guard source.baseAddress != own.baseAddress else { return }
    if group.end - group.start == count {
      swap(&entries, &spare)
    } else {
      _ = own.update(fromContentsOf: source)
    }
  }

  /// Queues the entries that share a key and whose names continue, to be sorted later.
  private mutating func split(_ group: Group) {
    var start = group.start
    for index in group.start + 1...group.end {
      if index < group.end, entries[index].key == entries[start].key { continue }
      if index - start > 1 {
        if entries[start].key & 0xFF == Self.continuation {
          pending.append(Group(start: start, end: index, depth: group.depth + Self.step))
        } else {
          isUnique = false
        }
      }
      start = index
    }
  }
}

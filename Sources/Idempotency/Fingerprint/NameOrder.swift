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
    /// The offset of the name in the bytes that hold all names.
    var start: UInt32
    var length: UInt32
    var payload: UInt64
    fileprivate var key: UInt64 = 0

    init(start: Int, length: Int, payload: UInt64) {
      self.start = UInt32(start)
      self.length = UInt32(length)
      self.payload = payload
    }

    var range: Range<Int> { Int(start)..<Int(start) + Int(length) }
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

  private let bytes: UnsafeRawBufferPointer
  private let entries: UnsafeMutableBufferPointer<Entry>
  private let spare: UnsafeMutableBufferPointer<Entry>
  private let counts: UnsafeMutableBufferPointer<UInt32>
  private(set) var count = 0
  /// The groups that are not sorted yet.
  private var pending: [Group] = []
  /// Whether no two names are equal. Valid after `sort`.
  private(set) var isUnique = true

  private init(
    _ bytes: UnsafeRawBufferPointer, _ memory: UnsafeMutableBufferPointer<Entry>,
    _ counts: UnsafeMutableBufferPointer<UInt32>
  ) {
    self.bytes = bytes
    entries = UnsafeMutableBufferPointer(rebasing: memory[..<(memory.count / 2)])
    spare = UnsafeMutableBufferPointer(rebasing: memory[(memory.count / 2)...])
    self.counts = counts
  }

  /// Calls `body` with an empty order for at most `capacity` names, whose bytes are in `bytes`.
  static func with<Result>(
    capacity: Int, in bytes: UnsafeRawBufferPointer, _ body: (inout NameOrder) -> Result
  ) -> Result {
    withUnsafeTemporaryAllocation(of: Entry.self, capacity: 2 * capacity) { memory in
      // The counts are needed for many names only, and are small enough for the stack.
      withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 256) { counts in
        var order = NameOrder(bytes, memory, counts)
        return body(&order)
      }
    }
  }

  mutating func append(_ entry: Entry) {
    entries[count] = entry
    count += 1
  }

  subscript(place: Int) -> Entry { entries[place] }

  mutating func sort() {
    guard count > 1 else { return }
    sort(Group(start: 0, end: count, depth: 0))
    while let group = pending.popLast() { sort(group) }
  }
}

extension NameOrder {
  private mutating func sort(_ group: Group) {
    var differing: UInt64 = 0
    let first = key(of: entries[group.start], at: group.depth)
    for index in group.start..<group.end {
      let key = key(of: entries[index], at: group.depth)
      entries[index].key = key
      differing |= key ^ first
    }
    if differing != 0 {
      if group.end - group.start <= Self.insertionBound {
        insert(group)
      } else {
        distribute(group, differing)
      }
    }
    split(group)
  }

  private func key(of entry: Entry, at depth: Int) -> UInt64 {
    let start = Int(entry.start) + depth
    let left = Int(entry.length) - depth
    guard left <= Self.step else {
      return UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self)) & ~0xFF
        | Self.continuation
    }
    var key = UInt64(left)
    for index in 0..<left { key |= UInt64(bytes[start + index]) << UInt64(56 - 8 * index) }
    return key
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
  private func distribute(_ group: Group, _ differing: UInt64) {
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
    if source.baseAddress != own.baseAddress { _ = own.update(fromContentsOf: source) }
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

/// The keys of one database, with their expiry.
///
/// Nothing here reads a clock, and no order depends on the hashes of Swift's dictionaries, which differ from one
/// process to the next.
package struct Keyspace {
  /// The value of a key.
  package enum Value: Equatable {
    case text(Bytes)
    /// The fields in the order in which they were made.
    case hash([(name: Bytes, value: Bytes)])
    /// The members of a sorted set in their order.
    case sorted([Scored])

    package static func == (one: Value, other: Value) -> Bool {
      switch (one, other) {
      case (.text(let one), .text(let other)): one == other
      case (.hash(let one), .hash(let other)):
        one.elementsEqual(other) { $0.name == $1.name && $0.value == $1.value }
      case (.sorted(let one), .sorted(let other)): one == other
      default: false
      }
    }

    var size: Int {
      switch self {
      case .text(let text): text.count
      case .hash(let fields): fields.reduce(0) { $0 + $1.name.count + $1.value.count + 32 }
      case .sorted(let members): members.reduce(0) { $0 + $1.member.count + 64 }
      }
    }
  }

  /// A member of a sorted set. Those of one score are in the order of their bytes.
  package struct Scored: Equatable, Comparable {
    var score: Double
    var member: Bytes

    package static func < (one: Scored, other: Scored) -> Bool {
      one.score < other.score
        || one.score == other.score && one.member.lexicographicallyPrecedes(other.member)
    }

    /// The score as a server writes it. All that Semel sends are whole numbers.
    var text: String { score.isFinite ? String(Int64(score)) : score > 0 ? "inf" : "-inf" }
  }

  package struct Entry: Equatable {
    package var value: Value
    /// The time from which on the key is gone, in milliseconds since 1970; `nil` for a key that stays.
    package var expiresAt: Int64?
  }

  /// The bytes that a key takes besides its own and its value's.
  private static let overhead = 96

  private var entries: [Bytes: Entry] = [:]
  private var index = KeyIndex()
  /// The bytes of all keys and values.
  private(set) var size = 0
  /// A time before which no key expires.
  private var earliestExpiry = Int64.max

  var count: Int { entries.count }
  /// The keys in their order.
  var sortedKeys: [Bytes] { entries.keys.sorted { $0.lexicographicallyPrecedes($1) } }

  /// The entry of a key, though it may have expired.
  subscript(key: Bytes) -> Entry? { entries[key] }

  /// The entry of a key that has not expired.
  func live(_ key: Bytes, at time: Int64) -> Entry? {
    guard let entry = entries[key], !Self.isExpired(entry, at: time) else { return nil }
    return entry
  }

  static func isExpired(_ entry: Entry, at time: Int64) -> Bool { entry.expiresAt.map { time > $0 } ?? false }

  mutating func set(_ key: Bytes, _ entry: Entry) {
    size += key.count + entry.value.size + Self.overhead
    if let earlier = entries.updateValue(entry, forKey: key) {
      size -= key.count + earlier.value.size + Self.overhead
    } else {
      index.insert(key)
    }
    if let end = entry.expiresAt { earliestExpiry = min(earliestExpiry, end) }
  }

  /// Removes a key. Returns whether it was there.
  @discardableResult
  mutating func remove(_ key: Bytes) -> Bool {
    guard let entry = entries.removeValue(forKey: key) else { return false }
    size -= key.count + entry.value.size + Self.overhead
    index.remove(key)
    return true
  }

  mutating func expire(_ key: Bytes, at end: Int64?) {
    guard entries[key] != nil else { return }
    entries[key]?.expiresAt = end
    if let end { earliestExpiry = min(earliestExpiry, end) }
  }

  /// The keys that have expired, in their order.
  mutating func expired(at time: Int64) -> [Bytes] {
    guard time > earliestExpiry else { return [] }
    earliestExpiry = .max
    var gone: [Bytes] = []
    for (key, entry) in entries {
      if Self.isExpired(entry, at: time) {
        gone.append(key)
      } else if let end = entry.expiresAt {
        earliestExpiry = min(earliestExpiry, end)
      }
    }
    return gone.sorted { $0.lexicographicallyPrecedes($1) }
  }
}

/// Walks over the keys.
extension Keyspace {
  /// Returns the keys of one step, and the cursor of the next one, which is 0 at the end.
  ///
  /// A walk visits each key that remains exactly once, whatever else comes and goes.
  func scan(from cursor: UInt64, count: Int) -> (next: UInt64, keys: [Bytes]) {
    index.step(from: cursor, count: count)
  }
}

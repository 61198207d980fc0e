/// One change of a database, as replicas and files take it.
package enum SimEffect: Equatable {
  case set(Bytes, Keyspace.Entry)
  case delete(Bytes)
  case expire(Bytes, at: Int64)
  /// Sets fields of a hash, each of which is followed by its value.
  case setFields(Bytes, ArraySlice<Bytes>)
  /// Sets scores of a sorted set, each of which is followed by its member.
  case setScores(Bytes, ArraySlice<Bytes>)
  /// Removes members of a sorted set, and the set with the last of them.
  case removeMembers(Bytes, ArraySlice<Bytes>)
  case publish(Bytes, message: Bytes)

  /// The key that it changes; `nil` for a message.
  var key: Bytes? {
    switch self {
    case .set(let key, _), .delete(let key), .expire(let key, _), .setFields(let key, _),
      .setScores(let key, _), .removeMembers(let key, _):
      key
    case .publish: nil
    }
  }

  /// Whether it makes or removes a whole key.
  var isWhole: Bool {
    switch self {
    case .set, .delete: true
    case .expire, .setFields, .setScores, .removeMembers, .publish: false
    }
  }

  /// The bytes that it takes in the stream, about.
  var length: Int {
    switch self {
    case .set(let key, let entry): 48 + key.count + entry.value.size
    case .delete(let key): 24 + key.count
    case .expire(let key, _): 48 + key.count
    case .setFields(let key, let words):
      words.count / 2 * (40 + key.count) + words.reduce(0) { $0 + $1.count }
    case .setScores(let key, let words), .removeMembers(let key, let words):
      24 + key.count + words.reduce(0) { $0 + $1.count + 8 }
    case .publish(let channel, let message): 32 + channel.count + message.count
    }
  }
}

/// The changes of one command or script, which replicas and files take as a whole.
package struct ReplicationEntry {
  let database: Int
  let effects: [SimEffect]
  /// The place in the stream after it.
  let end: Int64
}

/// The stream of a server's changes: its name, its end, and the last part of it.
package struct ReplicationLog {
  /// The name of the history that the server writes on.
  package private(set) var id: String
  /// The name of the history that it has followed until its promotion, and the last place of which both are one.
  package private(set) var formerID: String?
  package private(set) var formerEnd: Int64 = -1
  /// The place after the last change.
  package private(set) var end: Int64
  private var entries: [ReplicationEntry] = []
  private var first = 0
  private var size = 0
  private let maxSize: Int

  init(id: String, end: Int64 = 0, maxSize: Int) {
    self.id = id
    self.end = end
    self.maxSize = maxSize
  }

  /// Appends the changes of a command, and returns them as an entry.
  mutating func append(_ effects: [SimEffect], database: Int) -> ReplicationEntry {
    let length = effects.reduce(0) { $0 + $1.length }
    let entry = ReplicationEntry(database: database, effects: effects, end: end + Int64(length))
    append(entry)
    return entry
  }

  /// Appends an entry of the master's stream.
  mutating func append(_ entry: ReplicationEntry) {
    size += Int(entry.end - end)
    end = entry.end
    entries.append(entry)
    while size > maxSize, first + 1 < entries.count {
      size -= Int(entries[first].end - start)
      first += 1
    }
    if first > 1024, first * 2 > entries.count {
      entries.removeFirst(first)
      first = 0
    }
  }

  /// The place before the first entry that is kept.
  private var start: Int64 { end - Int64(size) }

  /// Begins a new history, as a promoted server does.
  mutating func fork(id new: String) {
    (formerID, formerEnd, id) = (id, end, new)
  }

  /// Takes the name of a master's history, which continues this one.
  mutating func follow(_ master: ReplicationLog) {
    if id != master.id { fork(id: master.id) }
  }

  /// The entries after a place of a history; `nil` if that is not a part of this one, or they are not kept any more.
  func entries(after place: Int64, of history: String) -> ArraySlice<ReplicationEntry>? {
    guard history == id || history == formerID && place <= formerEnd else { return nil }
    return entries(after: place)
  }

  /// The entries after a place of this history; `nil` if they are not kept any more.
  func entries(after place: Int64) -> ArraySlice<ReplicationEntry>? {
    guard place >= start, place <= end else { return nil }
    if place == end { return [] }
    var (low, high) = (first, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].end > place { high = middle } else { low = middle + 1 }
    }
    return entries[low...]
  }
}

import Idempotency
import Wire

/// An open record of the file, as it is kept in memory.
struct OpenRow: Equatable {
  /// The end of its lease, or the loss of its outcome.
  let lapse: StoreInstant
  /// The moment from which an unknown outcome counts as expired.
  let openUntil: StoreInstant
  /// The digest of its key; `nil` if it is not known.
  let key: UInt32?
  /// Whether an owner holds it, even if its lease has lapsed.
  let isHeld: Bool

  static let unreadable = OpenRow(
    lapse: StoreInstant(milliseconds: -1), openUntil: StoreInstant(milliseconds: .max), key: nil,
    isHeld: false)

  init?(_ entry: StoredEntry) {
    guard case .record(let record) = entry else { return nil }
    switch record.state {
    case .inFlight(let loss), .unknown(let loss):
      lapse = max(loss, StoreInstant(milliseconds: 0))
      openUntil = loss + record.unknownRetention
    case .released, .completed, .tombstone: return nil
    }
    key = record.attribution?.keyDigest.flatMap { UInt32($0, radix: 16) }
    isHeld = record.isHeld
  }

  private init(lapse: StoreInstant, openUntil: StoreInstant, key: UInt32?, isHeld: Bool) {
    self.lapse = lapse
    self.openUntil = openUntil
    self.key = key
    self.isHeld = isHeld
  }

  var isUnreadable: Bool { self == .unreadable }
}

/// The open records of the file, in the memory of the one process that writes it. Pure.
///
/// The table notes each change of a row, which counts once its transaction is committed. Until a walk after the start
/// has entered what earlier processes have left, `isWhole` is false, as it is once there are too many.
struct OpenRows {
  /// The position in a listing: what cannot be read, then by the time of the loss or of the lease's end.
  struct Place: Comparable {
    let lapse: Int64
    let id: Digest256

    static func < (left: Place, right: Place) -> Bool {
      if left.lapse != right.lapse { return left.lapse < right.lapse }
      for index in 0..<4 where left.id.words[index] != right.id.words[index] {
        return left.id.words[index] < right.id.words[index]
      }
      return false
    }
  }

  /// The maximum number of rows, which take 30 MB.
  static let maxCount = 250_000

  private let maxCount: Int
  private var rows: [Digest256: OpenRow] = [:]
  private var changes: [(id: Digest256, row: OpenRow?)] = []
  private(set) var isWhole = false
  private(set) var walked: Digest256?

  init(maxCount: Int = OpenRows.maxCount) { self.maxCount = maxCount }

  /// Notes the entry that a record gets in the running transaction; `nil` if it is removed.
  mutating func put(_ id: Digest256, _ entry: StoredEntry?) {
    changes.append((id, entry.flatMap(OpenRow.init)))
  }

  mutating func putUnreadable(_ id: Digest256) { changes.append((id, .unreadable)) }

  mutating func commit() {
    for change in changes { rows[change.id] = change.row }
    changes.removeAll(keepingCapacity: true)
    if rows.count > maxCount { begin() }
  }

  mutating func rollBack() { changes.removeAll(keepingCapacity: true) }

  /// Takes a step of the walk: the open records among the entries up to `last`, `nil` at the end. Returns whether there
  /// is room for them; else the walk begins anew.
  mutating func enter(_ found: [(id: Digest256, row: OpenRow)], to last: Digest256?) -> Bool {
    invariant(changes.isEmpty, "the walk reads what is not committed")
    for row in found { rows[row.id] = row.row }
    guard rows.count <= maxCount else {
      begin()
      return false
    }
    walked = last
    isWhole = last == nil
    return true
  }

  private mutating func begin() {
    rows = [:]
    walked = nil
    isWhole = false
  }
}

extension OpenRows {
  /// The next rows of a listing, and whether they are the last ones. Reads every row.
  func part(after place: Place?, limit: Int) -> (places: [Place], isLast: Bool) {
    var (places, count): ([Place], Int) = ([], 0)
    for (id, row) in rows {
      let next = Place(lapse: row.lapse.milliseconds, id: id)
      if let place, next <= place { continue }
      count += 1
      if places.count == limit {
        guard next < places[limit - 1] else { continue }
        places.removeLast()
      }
      places.insert(next, at: places.firstIndex { next < $0 } ?? places.count)
    }
    return (places, count <= limit)
  }

  /// The numbers of the records that are open. Reads every row.
  func count(now: StoreInstant) -> OpenCount {
    var count = OpenCount()
    for row in rows.values where now < row.openUntil {
      if row.isUnreadable {
        count.unreadable += 1
      } else if row.isHeld, now < row.lapse {
        count.inFlight += 1
      } else {
        count.unknown += 1
      }
    }
    return count
  }

  /// The records with one of these digests of keys. Reads every row.
  func ids(ofKeys keys: Set<UInt32>) -> [RecordID] {
    rows.compactMap { id, row in row.key.map(keys.contains) == true ? RecordID(id) : nil }
  }
}

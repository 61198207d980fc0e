import Idempotency
import Logging
import Platform
import Synchronization
import Telemetry

/// The latest audit entries of this process, in memory, for operators. The log has all of them.
final class AuditTrail: Sendable {
  static let capacity = 500
  /// The maximum length of a value, in characters: a reason may be as long as a request.
  static let maxValue = 500

  private let entries = Mutex<[AuditEntry]>([])

  /// Adds the entry of a change that has just been made or refused, in place of the oldest if there is no room.
  func add(_ details: Logger.Metadata) {
    let entry = AuditEntry(details)
    entries.withLock { entries in
      if entries.count == Self.capacity { entries.removeFirst() }
      entries.append(entry)
    }
  }

  var latest: [AuditEntry] { entries.withLock { $0.reversed() } }
}

struct AuditEntry: Sendable, Encodable {
  let time: String
  let action: String
  let record: String?
  let from: String
  let reason: String?
  let warning: String?
  /// The cause of a refusal; `nil` if the change was made or has failed.
  let refused: String?
  let failed: String?
  let details: [String: String]

  fileprivate init(_ metadata: Logger.Metadata) {
    var rest = metadata.mapValues { String("\($0)".prefix(AuditTrail.maxValue)) }
    time = Timestamp.now()
    action = rest.removeValue(forKey: "action") ?? ""
    record = rest.removeValue(forKey: "record")
    from = rest.removeValue(forKey: "from") ?? ""
    reason = rest.removeValue(forKey: "reason")
    warning = rest.removeValue(forKey: "warning")
    refused = rest.removeValue(forKey: "refused")
    failed = rest.removeValue(forKey: "failed")
    details = rest
  }
}

/// The requests of one record that this process has seen lately, and of one without attribution also its origin.
struct RecordTrail: Sendable {
  /// The name of the route; `nil` if the latest request matched none.
  var route: String?
  var keyDigest: String?
  var callerDigest: String?
  var deliveries = 0
  /// The cause of the latest loss; `nil` if no outcome was lost.
  var loss: LossCause?
  var latest: JournalEntry

  /// The origin, as far as the requests name it.
  var attribution: Attribution {
    Attribution(route: route ?? "", keyDigest: keyDigest, callerDigest: callerDigest, node: "")
  }

  fileprivate init(_ entry: JournalEntry) {
    latest = entry
    add(entry)
  }

  fileprivate mutating func add(_ entry: JournalEntry) {
    latest = entry
    route = entry.route ?? route
    keyDigest = entry.keyDigest ?? keyDigest
    callerDigest = entry.callerDigest ?? callerDigest
    if let cause = entry.loss { loss = cause }
    if entry.event == .ended { deliveries += 1 }
  }
}

struct RecordTrails: Sendable {
  private let trails: [RecordID: RecordTrail]
  /// The number of events that the journal holds, and the time of the oldest.
  let events: Int
  let since: Int64?

  init(_ journal: RequestJournal?) {
    var trails: [RecordID: RecordTrail] = [:]
    let entries = journal?.all ?? []
    for entry in entries {
      guard let id = entry.record else { continue }
      if trails[id]?.add(entry) == nil { trails[id] = RecordTrail(entry) }
    }
    self.trails = trails
    events = entries.count
    since = entries.first?.time
  }

  subscript(id: RecordID) -> RecordTrail? { trails[id] }

  /// The records whose trails satisfy a condition, the latest first.
  func ids(where isWanted: (RecordTrail) -> Bool) -> [RecordID] {
    trails.filter { isWanted($0.value) }.sorted { $0.value.latest.time > $1.value.latest.time }.map(\.key)
  }
}

extension RecordDocument {
  /// Adds what the journal knows of the record.
  mutating func add(_ trail: RecordTrail?) {
    guard let trail else { return }
    route = route ?? trail.route
    keyDigest = keyDigest ?? trail.keyDigest
    callerDigest = callerDigest ?? trail.callerDigest
    deliveries = trail.deliveries
    lastSeen = Timestamp.text(milliseconds: trail.latest.time)
    lastStatus = trail.latest.status
    // A record that has ended since needs no cause.
    if state == "unknown" { cause = cause ?? trail.loss?.rawValue }
  }
}

import Idempotency
import Platform
import Synchronization

/// The latest requests of this process that had a key, were refused or met a shadowed route, in memory, for operators.
/// The oldest entries give way, and nothing waits for a reader.
public final class RequestJournal: Sendable {
  /// The maximum number of entries, which take about two megabytes.
  public static let capacity = 8192

  private struct Ring {
    /// The entry with the number *n* is at *n* modulo the capacity.
    var entries: [JournalEntry] = []
    /// The number of the next entry, from 0 on.
    var end = 0
  }

  private let ring = Mutex(Ring())

  public init() {}

  /// Appends the entry of an event that has just happened, made in the place of the oldest if there is no room.
  public func add(_ event: JournalEntry.Event, _ entry: borrowing AccessLogEntry, record: RecordID?) {
    ring.withLock { ring in
      if ring.entries.count < Self.capacity {
        ring.entries.append(JournalEntry(event, entry, record: record))
      } else {
        ring.entries[ring.end % Self.capacity] = JournalEntry(event, entry, record: record)
      }
      ring.end += 1
    }
  }

  /// The number that the next entry gets.
  public var end: Int { ring.withLock { $0.end } }

  /// A part of the journal.
  public struct Part: Sendable {
    public var entries: [JournalEntry]
    /// The number of wanted entries that had given way to newer ones.
    public var missed: Int
    /// The number from which the next part begins.
    public var next: Int
  }

  /// The entries from a number on, the oldest first.
  public func part(from number: Int, max limit: Int) -> Part {
    ring.withLock { ring in
      let start = max(number, ring.end - ring.entries.count, 0)
      let next = min(ring.end, start + limit)
      let entries = start < next ? (start..<next).map { ring.entries[$0 % Self.capacity] } : []
      return Part(entries: entries, missed: max(0, start - max(number, 0)), next: max(next, start))
    }
  }

  /// All entries, the oldest first.
  public var all: [JournalEntry] { part(from: 0, max: Self.capacity).entries }
}

/// The facts about one event of a request. It contains no key, no caller and no body.
public struct JournalEntry: Sendable {
  public enum Event: String, Sendable {
    /// The request has its response, or its client is gone.
    case ended
    /// The outcome of the request's attempt was lost. The request may end later.
    case lost
  }

  public var event: Event
  /// The time of the event, in milliseconds since 1970.
  public var time: Int64
  /// The id of the request's record; `nil` for a request that was refused before it had one.
  public var record: RecordID?
  public var route: String?
  public var method: String?
  /// The client's address; `nil` for a Unix socket.
  public var client: String?
  /// The status of the response; `nil` if there was none.
  public var status: Int?
  public var outcome: RequestOutcome
  public var refusal: RefusalReason?
  /// The end that the request would have had; `nil` unless its route is shadowed.
  public var would: ShadowVerdict?
  public var source: ReplaySource?
  public var loss: LossCause?
  public var attempt: Int?
  public var keyDigest: String?
  public var callerDigest: String?
  /// The time until the response ended; `nil` if it has not.
  public var microseconds: Int64?

  init(_ event: Event, _ entry: borrowing AccessLogEntry, record: RecordID?) {
    self.event = event
    time = WallClock.milliseconds()
    self.record = record
    route = entry.route
    method = entry.method
    client = entry.client
    status = entry.status
    outcome = entry.outcome
    refusal = entry.refusal
    would = entry.would
    source = entry.source
    loss = entry.loss
    attempt = entry.attempt
    keyDigest = entry.keyDigest
    callerDigest = entry.callerDigest
    microseconds = entry.totalMicroseconds
  }
}

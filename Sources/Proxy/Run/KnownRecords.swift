import Idempotency
import Platform
import Synchronization

/// The records that this process has met on routes with `on_store_failure: open`, for all its event loops, in bounded
/// memory: while the store is away, a delivery that is known here does not run a second time.
///
/// Whether a delivery may run without the store is asked of it only after the store has failed, and so after the local
/// cache: the cache replays what it may. Runs of which the store does not know also count before a claim and beside its
/// reply. An outcome
/// that it may not replay, because an operator may have forgotten it at another node, is refused. A record that is
/// forgotten or resolved at another node stays here until its own time is over, since a push does not say which of the
/// two it was; once the store is back, its reply counts and replaces the entry. A record counts by what it is, and not
/// by the setting of its route, which a reload may have changed since.
///
/// The oldest entries are dropped, but for the records that a delivery of this process is running, of which there are
/// no more than requests.
public final class KnownRecords: Sendable {
  /// About 14 MB when full: half a minute to a minute of a thousand first runs a second.
  public static let defaultCapacity = 1 << 16

  private let records: Mutex<AgingMap<RecordID, KnownRecord>>
  /// Whether a record has ever been noted.
  private let isUsed = Atomic(false)
  /// Whether the records of all routes are noted.
  private let notesAllRoutes = Atomic(false)

  public init(capacity: Int = defaultCapacity) {
    records = Mutex(AgingMap(half: max(1, capacity / 2)) { $0.isRunningHere })
  }

  /// Changes what is known of a record in one step; the body is given the time, too.
  public func change<T: Sendable>(
    _ id: RecordID, now: BootInstant = .now,
    _ body: (inout KnownRecord?, BootInstant) -> T
  ) -> T {
    records.withLock { records in
      let before = records[id].flatMap { $0.hasExpired(now: now) ? nil : $0 }
      var record = before
      let result = body(&record, now)
      if record != nil { isUsed.store(true, ordering: .relaxed) }
      records[id] = record
      return result
    }
  }

  /// Whether a record is known, or is to be noted whatever its route. Costs nothing in a process that has had no route
  /// with `on_store_failure: open`.
  func counts(_ id: RecordID) -> Bool {
    notesAllRoutes.load(ordering: .relaxed) || contains(id)
  }

  /// Whether a record is known.
  public func contains(_ id: RecordID) -> Bool {
    isUsed.load(ordering: .relaxed) && records.withLock { $0[id] != nil }
  }

  /// Notes the records of all routes, while one event loop after the other takes over a configuration that opens some.
  func noteAllRoutes(_ isNeeded: Bool) {
    notesAllRoutes.store(isNeeded, ordering: .sequentiallyConsistent)
  }

  /// Removes a record that was forgotten, or resolved as not applied, at this node: its key is free to run.
  public func remove(_ id: RecordID) {
    records.withLock { $0[id] = nil }
  }

  /// Notes that a record has ended outside of this process's runs. A run that is under way notes its end by itself.
  public func end(_ id: RecordID, for remember: Milliseconds) {
    change(id) { record, now in
      guard record?.isRunningHere != true else { return }
      record = KnownRecord(
        .taken(until: now + remember), owner: record?.owner, fingerprint: record?.fingerprint)
    }
  }

  /// The number of records that are known.
  public var count: Int { records.withLock { $0.count } }
}

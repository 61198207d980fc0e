import Idempotency
import Platform
import Synchronization

/// The records that this process has met on routes with `on_store_failure: open`, for all its event loops, in bounded
/// memory: while the store is away, a delivery that is known here does not run a second time.
///
/// It is read only after the store has failed, and so after the local cache: the cache replays what it may. An outcome
/// that it may not replay, because an operator may have forgotten it at another node, is refused. A record that is
/// forgotten or resolved at another node stays here until its own time is over, since a push does not say which of the
/// two it was; once the store is back, its reply counts and replaces the entry.
///
/// Entries age in two halves: an entry is written into the younger one, and when that is full the older one is dropped,
/// but for the records that a delivery of this process is running, of which there are no more than requests.
public final class KnownRecords: Sendable {
  private struct State {
    let half: Int
    var young: [RecordID: KnownRecord] = [:]
    var old: [RecordID: KnownRecord] = [:]
    var turnsAt: Int

    init(half: Int) {
      self.half = half
      turnsAt = half
    }

    subscript(id: RecordID) -> KnownRecord? {
      get { young[id] ?? old[id] }
      set {
        old[id] = nil
        young[id] = newValue
        if young.count >= turnsAt { turn() }
      }
    }

    private mutating func turn() {
      let running = old.filter { $0.value.isRunningHere }
      old = young
      young = running
      turnsAt = max(half, 2 * running.count)
    }
  }

  /// About 14 MB when full: half a minute to a minute of a thousand first runs a second.
  public static let defaultCapacity = 1 << 16

  private let state: Mutex<State>

  public init(capacity: Int = defaultCapacity) {
    state = Mutex(State(half: max(1, capacity / 2)))
  }

  /// Changes what is known of a record in one step; the body is given the time, too.
  public func change<T: Sendable>(
    _ id: RecordID, now: BootInstant = .now,
    _ body: (inout KnownRecord?, BootInstant) -> T
  ) -> T {
    state.withLock { state in
      let before = state[id].flatMap { $0.hasExpired(now: now) ? nil : $0 }
      var record = before
      let result = body(&record, now)
      state[id] = record
      return result
    }
  }

  /// The record was forgotten, or resolved as not applied, at this node: its key is free to run.
  public func remove(_ id: RecordID) {
    state.withLock { $0[id] = nil }
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
  public var count: Int { state.withLock { $0.young.count + $0.old.count } }
}

import Idempotency
import Logging
import Platform
import Synchronization

/// The events after which live claims may not stand in Redis as their owners believe: another server has taken over, or
/// Redis' clock was set. All owners then renew their leases at once. The process has one alarm; safe to use from any
/// thread.
final class RedisAlarm: Sendable {
  /// The minimum time between two announcements to other processes.
  private static let interval: Milliseconds = 500

  private struct State {
    var lineage = ReplicationLineage()
    var observers: [@Sendable () -> Void] = []
    var announcedAt: BootInstant?
  }

  private let logger: Logger
  private let state = Mutex(State())
  /// The time when this process met the last promoted server, in nanoseconds of the boot-time clock; 0 before that.
  private let promotedAt = Atomic<Int64>(0)

  init(logger: Logger) { self.logger = logger }

  /// Calls `observer` whenever all leases must be renewed, on any thread.
  func observe(_ observer: @escaping @Sendable () -> Void) {
    state.withLock { $0.observers.append(observer) }
  }

  /// Has all owners of this process renew their leases.
  func renewLeases() {
    for observer in state.withLock({ $0.observers }) { observer() }
  }

  /// Takes a server's history, and returns its promotion if it has taken over from another one.
  func met(_ history: ReplicationHistory, of server: String, at now: BootInstant) -> ReplicationLineage
    .Promotion?
  {
    guard let promotion = state.withLock({ $0.lineage.met(history, at: now) }) else { return nil }
    if promotion.isNew {
      promotedAt.store(promotion.at.nanoseconds, ordering: .relaxed)
      logger.warning(
        "another Redis has taken over, which may lack the newest records: all running requests renew their claims",
        metadata: ["server": "\(server)"])
    }
    return promotion
  }

  /// Whether a claim with this lease may take over a record whose lease has lapsed.
  ///
  /// By a promoted server's clock the lease of a live owner may have lapsed before the owner has renewed it there. After
  /// its own lease, such an owner sends nothing any more.
  func mayTakeOver(after lease: Milliseconds) -> Bool {
    let promotedAt = promotedAt.load(ordering: .relaxed)
    return promotedAt == 0 || BootInstant.now >= BootInstant(nanoseconds: promotedAt) + lease
  }

  /// Logs that Redis' clock was set.
  func clockStepped(by step: Milliseconds, of server: String) {
    logger.warning(
      "Redis' clock was set: all running requests renew their leases, which are judged by it",
      metadata: ["server": "\(server)", "milliseconds": "\(step.count)"])
  }

  /// Whether other processes must hear of it now.
  func mayAnnounce(at now: BootInstant) -> Bool {
    state.withLock { state in
      if let last = state.announcedAt, now - last < Self.interval { return false }
      state.announcedAt = now
      return true
    }
  }

  /// Logs that a live claim was missing.
  func logSuspect(_ id: RecordID) {
    logger.warning(
      "Redis no longer had a running request's claim, so that another delivery may have run meanwhile; it is there again",
      metadata: ["record": "\(id.text)"])
  }
}

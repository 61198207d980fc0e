import Idempotency
import Logging
import Platform
import Synchronization

/// The events after which live claims may not stand in Redis as their owners believe: another server has taken over, or
/// Redis' clock was set. All owners then renew their leases at once. After an outage, their writes are still on the
/// way. The process has one alarm; safe to use from any thread.
final class RedisAlarm: Sendable {
  /// The minimum time between two announcements to other processes.
  private static let interval: Milliseconds = 500

  private struct State {
    var lineage = ReplicationLineage()
    var observers: [@Sendable () -> Void] = []
    var announcedAt: BootInstant?
    /// The difference of each server's clock to this machine's after its last step, in milliseconds.
    var differences: [String: Int64] = [:]
  }

  private let logger: Logger
  private let state = Mutex(State())
  /// The nanoseconds of `changedAt`; 0 for none. Atomic, since every claim reads it.
  private let changedAtNanoseconds = Atomic<Int64>(0)

  /// The shortest time for which an outcome that this process has recorded is remembered, in milliseconds.
  private let shortestLife = Atomic<Int64>(.max)

  /// The nanoseconds of the time until which writes that an outage has held up may come; 0 for none.
  private let writesMayComeUntil = Atomic<Int64>(0)

  /// The longest time until another process is connected again: an attempt that began before Redis was back, a pause.
  private static let reconnection = RedisLink.attemptSpan + RedisBackoff.maxPause

  /// The time when the leases were last renewed for such an event; `nil` before that.
  private var changedAt: BootInstant? {
    let nanoseconds = changedAtNanoseconds.load(ordering: .relaxed)
    return nanoseconds == 0 ? nil : BootInstant(nanoseconds: nanoseconds)
  }

  init(logger: Logger) { self.logger = logger }

  /// Calls `observer` whenever all leases must be renewed, on any thread.
  func observe(_ observer: @escaping @Sendable () -> Void) {
    state.withLock { $0.observers.append(observer) }
  }

  /// Makes all owners of this process renew their leases.
  func renewLeases() {
    changedAtNanoseconds.store(BootInstant.now.nanoseconds, ordering: .relaxed)
    for observer in state.withLock({ $0.observers }) { observer() }
  }

  /// Takes a server's history, and returns its promotion if it has taken over from another one.
  func met(_ history: ReplicationHistory, of server: String, at now: BootInstant) -> ReplicationLineage
    .Promotion?
  {
    guard let promotion = state.withLock({ $0.lineage.met(history, at: now) }) else { return nil }
    if promotion.isNew {
      changedAtNanoseconds.store(promotion.at.nanoseconds, ordering: .relaxed)
      logger.warning(
        "another Redis has taken over, which may lack the newest records: all running requests renew their claims",
        metadata: ["server": "\(server)"])
    }
    return promotion
  }

  /// Redis was not reachable, and is again. Owners in other processes repeat the writes that it did not take.
  ///
  /// - Parameter callTime: The longest time of one call.
  func noteReturn(at now: BootInstant, callTime: Milliseconds) {
    let span = Self.reconnection + WritePace.span(callTime: callTime)
    writesMayComeUntil.store((now + span).nanoseconds, ordering: .relaxed)
  }

  /// Whether a claim may take over a record whose lease has lapsed, or whose outcome is unknown.
  ///
  /// A promoted server, or one whose clock was set, may judge a live owner's lease as lapsed before the owner has
  /// renewed it there, and an unknown outcome as older than it is. After its own lease, such an owner sends nothing any
  /// more; after `settle`, the request of such an outcome does not run any more.
  ///
  /// - Parameter span: The lease or `settle`, whichever is longer.
  func mayTakeOver(after span: Milliseconds) -> Bool {
    let now = BootInstant.now
    guard now.nanoseconds >= writesMayComeUntil.load(ordering: .relaxed) else { return false }
    guard let changedAt else { return true }
    return now >= changedAt + span
  }

  /// Takes the time for which an outcome of this process is remembered.
  func recorded(for life: Milliseconds) {
    guard life.count < shortestLife.load(ordering: .relaxed) else { return }
    shortestLife.min(life.count, ordering: .relaxed)
  }

  /// Takes and logs a step of Redis' clock. Returns whether outcomes have expired by it that were recorded just before:
  /// each event loop meets the step, and the first one is told.
  ///
  /// - Parameter difference: The difference to this machine's clock after the step, in milliseconds.
  func clockStepped(by step: Milliseconds, to difference: Int64, of server: String) -> Bool {
    let span = state.withLock { state in
      let before = difference - step.count
      defer { state.differences[server] = difference }
      return difference - max(before, state.differences[server] ?? before)
    }
    logger.warning(
      "Redis' clock was set: all running requests renew their leases, which are judged by it",
      metadata: ["server": "\(server)", "milliseconds": "\(step.count)"])
    return span > shortestLife.load(ordering: .relaxed)
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

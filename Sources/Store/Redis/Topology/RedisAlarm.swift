import Idempotency
import Logging
import Platform
import Synchronization

/// The events after which live claims may not stand in Redis as their owners believe: another server has taken over, or
/// Redis' clock was set. All owners then renew their leases. The process has one alarm; safe to use from any thread.
final class RedisAlarm: Sendable {
  /// The minimum time between two announcements to other processes.
  private static let interval: Milliseconds = 500

  private struct State {
    var lineage = ReplicationLineage()
    var observers: [@Sendable () -> Void] = []
    var announcedAt: BootInstant?
    var differences: [String: Int64] = [:]
  }

  private let logger: Logger
  private let state = Mutex(State())
  /// 0 for none. Atomic, since every claim reads it.
  private let changedAtNanoseconds = Atomic<Int64>(0)

  /// The shortest life of an outcome that this process has recorded, in milliseconds.
  private let shortestLife = Atomic<Int64>(.max)

  /// The time until which writes that an outage has held up may come; 0 for none.
  private let writesMayComeUntil = Atomic<Int64>(0)

  /// The longest time until another process is connected again.
  private static let reconnection = RedisLink.attemptSpan + RedisLink.maxPause

  private var changedAt: BootInstant? {
    let nanoseconds = changedAtNanoseconds.load(ordering: .relaxed)
    return nanoseconds == 0 ? nil : BootInstant(nanoseconds: nanoseconds)
  }

  init(logger: Logger) { self.logger = logger }

  func observe(_ observer: @escaping @Sendable () -> Void) {
    state.withLock { $0.observers.append(observer) }
  }

  /// Makes all owners of this process renew their leases.
  func renewLeases() {
    changedAtNanoseconds.store(BootInstant.now.nanoseconds, ordering: .relaxed)
    for observer in state.withLock({ $0.observers }) { observer() }
  }

  /// Takes a server's history. Returns its promotion if it has taken over from another one.
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

  /// Redis is reachable again. Owners in other processes repeat the writes that it did not take, for calls of
  /// `callTime`.
  func noteReturn(at now: BootInstant, callTime: Milliseconds) {
    let span = Self.reconnection + WritePace.span(callTime: callTime)
    writesMayComeUntil.store((now + span).nanoseconds, ordering: .relaxed)
  }

  /// Whether a claim may take over a record whose lease has lapsed, or whose outcome is unknown.
  ///
  /// A promoted server, or one whose clock was set, may misjudge a live owner's lease, or the age of an unknown
  /// outcome. After its own lease such an owner sends nothing any more; after `settle` the request does not run any
  /// more.
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

  /// Takes and logs a step of Redis' clock, after which it differs by `difference` milliseconds from this machine's.
  /// Returns whether outcomes have expired that were recorded just before; the first event loop is told.
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

  func mayAnnounce(at now: BootInstant) -> Bool {
    state.withLock { state in
      if let last = state.announcedAt, now - last < Self.interval { return false }
      state.announcedAt = now
      return true
    }
  }

  func logSuspect(_ id: RecordID) {
    logger.warning(
      "Redis no longer had a running request's claim, so that another delivery may have run meanwhile; it is there again",
      metadata: ["record": "\(id.text)"])
  }
}

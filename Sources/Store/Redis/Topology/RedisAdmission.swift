import Idempotency
import Logging
import Platform
import Synchronization
import Wire

enum RedisAdmission: Equatable {
  enum Reason: Equatable {
    /// The configuration is not the namespace's, as this sentence says.
    case otherConfiguration(String)
    /// With `require_durable`, records may be lost or are.
    case loss(String)
    /// Too few replicas have had the server's changes for the time of a call.
    case shortage(String)
    /// The configuration was not yet compared with its namespace's.
    case uncompared
  }

  case open
  case refused(Reason)
  /// Claims wait until then, so that live owners reach the server first.
  case paused(until: BootInstant)
}

struct RedisConditions {
  enum Comparison: Equatable {
    case awaited, accepted
    case refused(String)
  }

  let requiresDurable: Bool
  var comparison: Comparison
  var facts = RedisFacts()
  var loss: String?
  private var pauseEnd: BootInstant?

  init(_ settings: RedisEndpointSettings) {
    requiresDurable = settings.requireDurable
    comparison = settings.awaitsAdmission ? .awaited : .accepted
  }

  /// Takes the facts of an inspection, unless they are those of another run than this connection has met.
  mutating func inspected(_ found: RedisFacts) {
    if let run = facts.run, let other = found.run, run != other { return }
    facts = found
  }

  mutating func pause(until end: BootInstant) { pauseEnd = pauseEnd.map { max($0, end) } ?? end }

  var risk: String? {
    guard requiresDurable else { return nil }
    return loss.map { "require_durable is set, and \($0)" }
      ?? facts.doubts.first.map { "require_durable is set, and this Redis may lose records: \($0)" }
  }

  @inline(__always)  // or each claim copies all facts
  func admission(shortage: String?, at now: BootInstant) -> RedisAdmission {
    if case .refused(let reason) = comparison { return .refused(.otherConfiguration(reason)) }
    if requiresDurable, let risk { return .refused(.loss(risk)) }
    if let shortage { return .refused(.shortage(shortage)) }
    if case .awaited = comparison { return .refused(.uncompared) }
    if let pauseEnd, now < pauseEnd { return .paused(until: pauseEnd) }
    return .open
  }
}

extension RedisAdmission.Reason {
  var text: String {
    switch self {
    case .otherConfiguration(let text), .loss(let text), .shortage(let text): text
    case .uncompared: "the configuration was not yet compared with its namespace's"
    }
  }

  var isOfStore: Bool {
    switch self {
    case .otherConfiguration, .loss: true
    case .shortage, .uncompared: false
    }
  }
}

/// The last sign of one server on any connection of this process. Safe to use from any thread.
final class RedisPresence: Sendable {
  private let nanoseconds = Atomic<Int64>(.min)

  /// Takes the arrival of bytes from the server, whatever they say.
  func heard(at now: BootInstant) { nanoseconds.store(now.nanoseconds, ordering: .relaxed) }

  func hasSpoken(since begin: BootInstant) -> Bool {
    nanoseconds.load(ordering: .relaxed) >= begin.nanoseconds
  }
}

/// The servers whose signs count, not those of one connection, which may wait behind large replies. Thread-safe.
final class RedisPresences: Sendable {
  private let known = Mutex<[ServerAddress: RedisPresence]>([:])

  func of(_ address: ServerAddress) -> RedisPresence {
    known.withLock { known in
      if let presence = known[address] { return presence }
      let presence = RedisPresence()
      known[address] = presence
      return presence
    }
  }
}

extension RedisLink {
  /// The number of bytes that have passed, in both directions.
  var passedBytes: Int {
    guard let handler else { return readBytes }
    return readBytes + writtenBytes - handler.unsentBytes
  }

  /// Whether the server answers nobody: a connection that was begun after its last sign to anyone in this process has
  /// failed, or has got no sign for the time of a call. `nil` if that is not known yet.
  func isServerSilent(at now: BootInstant) -> Bool? {
    if isUp { return false }
    guard let presence else { return outage == nil ? nil : true }
    if let failedAttemptAt, !presence.hasSpoken(since: failedAttemptAt) { return true }
    guard isConnecting, let attemptedAt, now - attemptedAt >= settings.timeout else { return nil }
    return presence.hasSpoken(since: attemptedAt) ? nil : true
  }
}

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

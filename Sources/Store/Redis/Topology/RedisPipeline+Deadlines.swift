import Idempotency
import NIOCore
import Platform

extension RedisPipeline {
  /// Starts the timer, unless it fires earlier already. One timer serves all commands.
  func arm(at instant: BootInstant) {
    if let timer {
      guard instant < timer.at else { return }
      context.timers.stop(timer.token)
    }
    let span = max(instant - BootInstant.now, 0)
    timer = (context.timers.start(milliseconds: span.count) { [self] in expire() }, instant)
  }

  /// Ends the waits whose deadline has passed. If a command had the whole time-out on this connection, and nothing has
  /// arrived for as long, the connection is given up. Otherwise Redis replies, only later, and a new connection would
  /// have to wait just as long.
  private func expire() {
    let now = BootInstant.now
    let due = timer?.at ?? now
    timer = nil
    if isOverdue(at: now),
      case .readUntil(let later) = replyDeadline.verdict(due: due, now: now, hasUnread: link.hasUnread)
    {
      return arm(at: later)
    }
    let silentFrom = link.readAt + settings.timeout
    let isStuck = pending.first.map { max($0.overdueAt(settings.timeout), silentFrom) <= now } ?? false
    timeOut(at: now)
    if isStuck { return link.fail("Redis did not reply in \(settings.timeout.count) ms") }
    var next = pending.first.map { max($0.overdueAt(settings.timeout), silentFrom) }
    for command in pending where command.waiter != nil {
      next = min(next ?? command.deadline, command.deadline)
    }
    if let next { arm(at: next) }
  }

  private func isOverdue(at now: BootInstant) -> Bool {
    guard let first = pending.first else { return false }
    if first.overdueAt(settings.timeout) <= now { return true }
    return pending.contains { $0.waiter != nil && $0.deadline <= now }
  }

  /// Ends the waits whose deadline has passed. They are called once all are known: they may write other commands.
  private func timeOut(at now: BootInstant) {
    var due: [Pending] = []
    for index in pending.indices where pending[index].waiter != nil && pending[index].deadline <= now {
      due.append(pending[index])
      pending[index].waiter = nil
    }
    for command in due {
      command.finish(with: ScriptReply(ending: .timedOut, sentAt: command.sentAt), timeout: settings.timeout)
    }
  }
}

extension RedisPipeline {
  enum Waiter {
    case task(UnsafeContinuation<ScriptReply, Never>)
    case call((ScriptReply, CommandAttempts) -> Void)
    /// For the reply to a command that is not a script.
    case plain((RedisPlainCommand.Reply) -> Void)
    /// The same as a Swift value; `nil` if there is no reply.
    case value((RedisValue?) -> Void)
    /// For the reply to a command that waits for replicas.
    case replicas(ReplicaWaits)
  }

  struct Pending {
    /// The receiver; `nil` if nobody waits any more, and the reply only takes its place in the order.
    var waiter: Waiter?
    var deadline: BootInstant
    var sentAt: BootInstant
    /// A script's reply has the store's time.
    var isScript = false
    /// Whether the command's change counts only once replicas have it.
    var awaitsReplicas = false
    /// The record of a script, if replicas are demanded.
    var id: RecordID?

    func overdueAt(_ timeout: Milliseconds) -> BootInstant {
      if case .replicas(let waits) = waiter { sentAt + waits.maxWait } else { sentAt + timeout }
    }

    func finish(with reply: ScriptReply, timeout: Milliseconds) {
      switch waiter {
      case .task(let continuation): continuation.resume(returning: reply)
      case .call(let onReply): onReply(reply, CommandAttempts(timeout: timeout, deadline: deadline))
      case .plain(let onReply): onReply(.lost(reply.lossReason))
      case .value(let onReply): onReply(nil)
      case .replicas, nil: break
      }
    }
  }
}

/// Judges the deadline of a reply whose timer has fired. Pure. After a stall of this process, timers fire before the
/// socket is read: such a deadline proves nothing, so the connection is read once before it is given up.
struct LateReplyDeadline {
  enum Verdict: Equatable {
    case over
    case readUntil(BootInstant)
  }

  static let tolerance = Milliseconds(Lateness.tolerance)
  static let grace = Milliseconds(Lateness.replyGrace)
  /// The maximum number of consecutive reads without a reply, for a dead Redis on a busy loop.
  static let maxReadings = 5

  private var readings = 0

  /// Returns whether the deadline is over, which should have fired at `due`.
  mutating func verdict(due: BootInstant, now: BootInstant, hasUnread: Bool) -> Verdict {
    guard hasUnread || now - due > Self.tolerance, readings < Self.maxReadings else {
      readings = 0
      return .over
    }
    readings += 1
    return .readUntil(now + Self.grace)
  }

  mutating func hasRead() { readings = 0 }
}

extension RedisPipeline {
  /// The time for which new claims wait after the server's clock was set, for all owners to renew their leases.
  private static let clockGrace: Milliseconds = 200

  /// The time after a promotion in which a connection to the server has the leases renewed.
  private static let promotionTime: Milliseconds = 10_000

  func readHistory() {
    query(RedisHandshake.Step.info.command) { [self] reply in
      if let history = reply.flatMap(ReplicationHistory.init) { met(history) }
    }
  }

  func met(_ history: ReplicationHistory) {
    let now = BootInstant.now
    mayBeReplica = history.isOfReplica
    guard let promotion = subscriber.alarm.met(history, of: name, at: now), alarmedHistory != history.id
    else { return }
    alarmedHistory = history.id
    // A cached outcome may not be in the new server.
    subscriber.dropCachedOutcomes()
    guard now - promotion.at < Self.promotionTime else { return }
    if let demand = settings.demand, demand.replicas > 0 {
      conditions.pause(until: promotion.at + settings.failoverGrace)
    }
    renewLeases()
  }

  func clockStepped(by step: Milliseconds) {
    let isLoss = subscriber.alarm.clockStepped(by: step, to: clock.difference, of: name)
    if isLoss { subscriber.inspector.expired() }
    subscriber.dropCachedOutcomes()
    conditions.pause(until: BootInstant.now + Self.clockGrace)
    renewLeases()
  }

  private func renewLeases() {
    subscriber.alarm.renewLeases()
    guard subscriber.alarm.mayAnnounce(at: BootInstant.now) else { return }
    query(["PUBLISH", keys.invalidations, RedisKeys.renewal]) { _ in }
  }
}

extension RedisPipeline {
  /// The result of a copy that this server refused, executing nothing, because another one has the record's key.
  func refusalToMove(_ text: String) -> ScriptReply.Ending? {
    switch settings.topology {
    case .standalone: return nil
    case .sentinel: return RedisRefusal.isDemotion(text) ? .unwritten("the master has become a replica") : nil
    case .cluster:
      guard let refusal = refusal(in: text) else { return nil }
      didRefuse(refusal)
      return .redirected(refusal)
    }
  }

  /// Whether the error says that the master of Sentinel is a replica by now. The connection to it then ends.
  func endsByDemotion(_ text: String) -> Bool {
    guard case .sentinel = settings.topology, RedisRefusal.isDemotion(text) else { return false }
    link.fail("the master has become a replica")
    return true
  }

  /// The redirection in an error of a cluster's node.
  func refusal(in text: String) -> ClusterRefusal? {
    guard settings.topology.isCluster, let address = link.address else { return nil }
    return ClusterRefusal(text, from: address)
  }
}

extension RedisPipeline {
  /// Ends the next write with the command that waits for replicas, if scripts are open.
  func linkWillWrite() {
    let now = BootInstant.now
    guard let waits, let commands = waits.commands(at: now) else { return }
    if let id = commands.touch { append(touchOf: id, for: waits, at: now) }
    link.append { $0.writeCommand(commands.wait) }
    link.counters.countRoundTrip()
    // It ends with the connection: the scripts that it covers have deadlines of their own.
    let never = BootInstant(nanoseconds: .max)
    pending.append(Pending(waiter: .replicas(waits), deadline: never, sentAt: now))
    unwritten += 1
    arm(at: now + waits.maxWait)
  }

  /// Writes something of a completed record that was only read, for the next wait to cover.
  private func append(touchOf id: RecordID, for waits: ReplicaWaits, at now: BootInstant) {
    let waiter = Waiter.call { reply, _ in waits.touched(id, reply.ending) }
    append(.touch, id, 0, now + settings.timeout, waiter, isWhole: true) { _, _ in }
  }

  /// Holds a reply that counts only once replicas have the change, or the completion. False if it counts now.
  func isHeld(_ reply: ScriptReply, of command: Pending) -> Bool {
    guard let waits else { return false }
    guard command.waiter != nil else {
      if command.awaitsReplicas { waits.dropped() }
      return true
    }
    return waits.hold(
      reply, of: command.id, isAwaited: command.awaitsReplicas, until: command.deadline
    ) {
      [timeout = settings.timeout] in command.finish(with: $0, timeout: timeout)
    }
  }

  func replicasReplied(_ reply: RedisValue, _ waits: ReplicaWaits, at now: BootInstant) {
    switch waits.replied(reply, at: now) {
    case .success(let microseconds?): link.counters.didWait(microseconds)
    case .success(nil): break
    case .failure(let error): link.fail(RedisRefusal.advice(error.text))
    }
  }
}

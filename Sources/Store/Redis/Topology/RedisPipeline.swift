import Idempotency
import NIOCore
import Platform
import Wire

/// The commands of one event loop that wait for their replies, in their order. Confined to its loop.
final class RedisPipeline: RedisLinkUser, @unchecked Sendable {
  /// The time without replies after which Redis' time is read, for the estimate of its clock and to detect a dead
  /// connection.
  private static let keepAlive: TimeAmount = .seconds(10)

  let context: EventLoopContext
  let settings: RedisEndpointSettings
  let link: RedisLink
  let keys: RedisKeys
  let subscriber: RedisSubscriber
  let responses: RedisResponseLine
  let waits: ReplicaWaits?
  var pending = CircularBuffer<Pending>(initialCapacity: 64)
  var unwritten = 0
  private(set) var clock = RedisClock()
  private let shared: SharedClaims
  private var heads: [[UInt8]] = []
  private(set) var claimDigest: String?
  var timer: (token: LoopTimers.Token, at: BootInstant)?
  var replyDeadline = LateReplyDeadline()
  private var heartbeat: RepeatedTask?
  /// The time of the last reply of this connection, or of its beginning.
  private var lastReplyAt: BootInstant?
  /// The time of the replies that are being read.
  private var receivedAt: BootInstant?
  /// The connection was established or lost, or claims are refused or allowed.
  var didChange: () -> Void = {}
  /// This server has had too few replicas for the time of a call.
  var didFallShort: (String) -> Void = { _ in }
  /// This node of a cluster has refused a command.
  var didRefuse: (ClusterRefusal) -> Void = { _ in }
  var conditions: RedisConditions
  private var figures: RedisNodeFigures?
  /// Whether the server was a replica when its history was read last, or has lost its slots since.
  var mayBeReplica = false
  /// The history of the promotion that caches and owners were told of over this connection.
  var alarmedHistory: String?

  init(link: RedisLink, subscriber: RedisSubscriber, shared: SharedClaims) {
    self.shared = shared
    let context = link.context
    self.context = context
    self.link = link
    self.subscriber = subscriber
    settings = link.settings
    responses = RedisResponseLine(beside: link)
    keys = RedisKeys(namespace: settings.namespace)
    conditions = RedisConditions(settings)
    waits = settings.demand.map { ReplicaWaits($0, timeout: link.settings.timeout, context: context) }
    link.user = self
    responses.needsSign = { [unowned self] in query(["PING"]) { _ in } }
    waits?.didChange = { [unowned self] in shortageChanged() }
    // An empty write, at whose end `linkWillWrite` appends the waiting command.
    waits?.needsWrite = { if link.isUp { link.append { _ in } } }
  }

  func admission(at now: BootInstant) -> RedisAdmission {
    conditions.admission(shortage: waits?.shortage, at: now)
  }

  var refusal: RedisAdmission.Reason? {
    if case .refused(let reason) = admission(at: .now) { reason } else { nil }
  }

  private func shortageChanged() {
    if let shortage = waits?.shortage {
      subscriber.warnings.refuseUntilAccepted(named(shortage))
      didFallShort(shortage)
    } else if let demand = waits?.demand {
      subscriber.warnings.accept(after: named(demand.shortage))
    }
    publishStatus()
  }

  func take(_ comparison: RedisConditions.Comparison) {
    let before = conditions.comparison
    conditions.comparison = comparison
    if case .refused = comparison {
      // Reported even while Redis is unreachable.
      publishStatus()
    } else if case .refused = before, link.isUp {
      publishStatus()
    }
  }

  private func publishStatus() {
    if let refusal, refusal != .uncompared {
      link.monitor.refuses(refusal.text)
    } else if let obstacle = conditions.facts.obstacle {
      link.monitor.hinders(obstacle)
    } else {
      link.monitor.serves()
    }
    didChange()
  }

  func start() {
    link.start()
    heartbeat = context.loop.scheduleRepeatedTask(
      initialDelay: Self.keepAlive, delay: Self.keepAlive
    ) { _ in self.beat() }
  }

  func close() {
    heartbeat?.cancel()
    (didChange, didRefuse, didFallShort) = ({}, { _ in }, { _ in })
    responses.close()
    link.close()
  }

  var isIdle: Bool { pending.isEmpty && responses.isIdle }

  var name: String { link.address.map { "\($0)" } ?? "Redis" }

  func named(_ reason: String) -> String {
    settings.topology.isCluster ? "\(name): \(reason)" : reason
  }

  func named(_ facts: RedisFacts) -> RedisFacts {
    var facts = facts
    facts.doubts = facts.doubts.map(named)
    facts.obstacle = facts.obstacle.map(named)
    return facts
  }
}

extension RedisPipeline {
  /// Writes a command that is not a script, after `ASKING` if wanted. `onReply` gets `nil` if there is no reply.
  func query(_ words: [String], isAsking: Bool = false, onReply: @escaping (RedisValue?) -> Void) {
    guard link.isUp else { return onReply(nil) }
    if isAsking { appendAsking() }
    link.append { $0.writeCommand(words) }
    let now = BootInstant.now
    let deadline = now + settings.timeout
    pending.append(Pending(waiter: .value(onReply), deadline: deadline, sentAt: now))
    unwritten += 1
    arm(at: deadline)
  }

  /// Writes one copy of a command that is not a script to this node, after `ASKING` if wanted.
  func append(
    _ command: RedisPlainCommand, _ deadline: BootInstant, isAsking: Bool = false,
    onReply: @escaping (RedisPlainCommand.Reply) -> Void
  ) {
    context.loop.preconditionInEventLoop()
    invariant(link.isUp, "a command without a connection")
    if isAsking { appendAsking() }
    link.append { $0.writeCommand(capacity: command.capacity, command.write) }
    link.counters.countRoundTrip()
    pending.append(Pending(waiter: .plain(onReply), deadline: deadline, sentAt: BootInstant.now))
    unwritten += 1
    arm(at: deadline)
  }

  private func appendAsking() {
    link.append { $0.writeCommand(["ASKING"]) }
    let now = BootInstant.now
    pending.append(Pending(waiter: nil, deadline: now + settings.timeout, sentAt: now))
    unwritten += 1
  }

  /// Writes one copy of a script's command to this node.
  ///
  /// - Parameters:
  ///   - capacity: The approximate number of bytes that `write` writes.
  ///   - deadline: The time at which the call ends.
  ///   - isWhole: Whether the command carries the script instead of its digest.
  ///   - isAsking: Whether `ASKING` precedes it.
  ///   - write: Writes the arguments after the keys.
  @inline(never)
  func append(
    _ script: RedisScript, _ id: RecordID?, _ capacity: Int, _ deadline: BootInstant,
    _ waiter: Waiter?, isWhole: Bool = false, isAsking: Bool = false, at now: BootInstant = .now,
    _ write: (inout RedisCommandWriter, _ deadline: StoreInstant) -> Void
  ) {
    // Else replies would go to the wrong commands.
    context.loop.preconditionInEventLoop()
    invariant(link.isUp, "a command without a connection")
    // Without an estimate, the claim is refused as late, whose reply brings the time.
    let limit = clock.estimate(at: now).map { $0 + max(deadline - now, 0) } ?? StoreInstant(milliseconds: 0)
    if isAsking { appendAsking() }
    let head = isWhole ? RedisKeys.wholeHead(script) : heads[script.rawValue]
    link.append { buffer in
      buffer.writeCommand(capacity: head.count + keys.capacity + capacity) { writer in
        writer.bytes(head)
        if let id { keys.write(id, to: &writer) }
        write(&writer, limit)
      }
    }
    link.counters.countRoundTrip()
    var command = Pending(waiter: waiter, deadline: deadline, sentAt: now, isScript: true)
    if let waits {
      command.id = id
      command.awaitsReplicas = script.awaitsReplicas
      if script.awaitsReplicas { waits.wrote() }
    }
    pending.append(command)
    unwritten += 1
    arm(at: deadline)
  }

  private func beat() {
    let now = BootInstant.now
    let minSilence = Milliseconds(Self.keepAlive.nanoseconds / 2_000_000)
    guard link.isUp, let lastReplyAt, now - lastReplyAt >= minSilence else { return }
    readTime()
  }

  /// Reads the server's time.
  func readTime() {
    let sentAt = BootInstant.now
    query(RedisHandshake.Step.clock.command) { [self] reply in
      if let reply { takeTime(reply, sentAt: sentAt) }
    }
  }

  func takeTime(_ reply: RedisValue, sentAt: BootInstant) {
    if let now = StoreInstant(reply) { take(now, sentAt: sentAt) }
  }
}

extension RedisPipeline {
  func linkIsUp(_ result: RedisHandshakeResult, isBack: Bool) -> String? {
    invariant(pending.isEmpty && unwritten == 0, "commands are left of the connection before")
    invariant(result.digests.count == RedisScript.allCases.count, "a connection without all scripts")
    let begunAt = BootInstant.now
    lastReplyAt = begunAt
    if isBack { subscriber.alarm.noteReturn(at: begunAt, callTime: settings.timeout) }
    clock.reset()
    alarmedHistory = nil
    mayBeReplica = false
    figures = link.counters.node(name)
    if let now = result.now { take(now, sentAt: link.attemptedAt ?? begunAt) }
    let facts = named(result.facts)
    if let history = facts.history { met(history) }
    heads = zip(RedisScript.allCases, result.digests).map { RedisKeys.head($0, digest: $1) }
    claimDigest = result.digests[RedisScript.claim.rawValue]
    for (key, epoch) in facts.epochs { subscriber.inspector.found(epoch, under: key) }
    conditions.facts = facts
    judge()
    if conditions.risk == nil { for doubt in facts.doubts { subscriber.warnings.warn(doubt) } }
    return conditions.risk
  }

  func inspected(_ facts: RedisFacts) {
    conditions.inspected(facts)
    judge()
  }

  /// Judges what is known of this Redis. With `require_durable`, none that may lose records grants a claim.
  private func judge() {
    conditions.loss = subscriber.epoch.loss
    if let risk = conditions.risk { subscriber.warnings.refuse(risk) }
    publishStatus()
  }

  func linkReceived(_ reply: borrowing HiredisReply) {
    let receivedAt = receivedAt ?? link.readAt
    self.receivedAt = receivedAt
    guard let command = pending.popFirst() else {
      return link.fail("Redis sent an unexpected reply")
    }
    switch command.waiter {
    case .plain(let onReply): return onReply(RedisPlainCommand.Reply(reply))
    case .value(let onReply): return onReply(reply.value)
    case .replicas(let waits): return replicasReplied(reply.value, waits, at: receivedAt)
    case .task, .call, nil: break
    }
    guard command.isScript else { return }
    var scriptReply = ScriptReply(reply)
    if scriptReply.now.milliseconds > 0 { take(scriptReply.now, sentAt: command.sentAt) }
    figures?.replied(after: receivedAt.nanoseconds - command.sentAt.nanoseconds)
    scriptReply.sentAt = command.sentAt
    if case .refused(let text) = scriptReply.ending, let refusal = refusalToMove(text) {
      scriptReply.ending = refusal
      if command.awaitsReplicas { waits?.dropped() }
      command.finish(with: scriptReply, timeout: settings.timeout)
      if case .unwritten(let reason) = refusal { link.fail(reason) }
      return
    }
    if isHeld(scriptReply, of: command) { return }
    command.finish(with: scriptReply, timeout: settings.timeout)
  }

  private func take(_ now: StoreInstant, sentAt: BootInstant) {
    guard let step = clock.update(to: now, sentAt: sentAt, at: receivedAt ?? BootInstant.now) else { return }
    clockStepped(by: step)
  }

  func linkReadAll() {
    guard let receivedAt else { return }
    replyDeadline.hasRead()
    lastReplyAt = receivedAt
    self.receivedAt = nil
  }

  func linkWrote() {
    unwritten = 0
    shared.wrote()
  }

  func linkIsDown(_ reason: String) {
    responses.close()
    clock.reset()
    let orphans = pending
    let written = max(0, orphans.count - unwritten)
    receivedAt = nil
    pending.removeAll(keepingCapacity: true)
    unwritten = 0
    waits?.lost(reason)
    for (index, orphan) in orphans.enumerated() {
      orphan.finish(
        with: ScriptReply(ending: index < written ? .lost(reason) : .unwritten(reason)),
        timeout: settings.timeout)
    }
    didChange()
  }
}

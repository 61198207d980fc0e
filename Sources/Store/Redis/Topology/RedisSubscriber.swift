import Idempotency
import Logging
import NIOCore
import Platform
import Synchronization
import Wire

/// The subscription connection of the process. It receives the ends of the records that tasks wait for, and the
/// invalidations of all nodes' caches.
///
/// There is one for all event loops, so that each message is sent to a node once; it is not on the hot path. It is
/// confined to the loop of its context, except for the members that are marked as safe from any thread.
public final class RedisSubscriber: RedisLinkUser, @unchecked Sendable {
  /// The command that a reply belongs to. Replies arrive in the order of the commands, with messages in between.
  private enum Expected {
    case topic(RedisTopic)
    case invalidations, leaving, beat
  }

  /// The interval of pings. A dead connection is detected within two intervals, during which the cache may replay an
  /// outcome that was forgotten on another node.
  private static let beatInterval: TimeAmount = .seconds(1)

  private let context: EventLoopContext
  private let link: RedisLink
  /// The Sentinels; `nil` in any other topology.
  let sentinel: SentinelMonitor?
  private let keys: RedisKeys
  private let logger: Logger
  private var topics: [String: RedisTopic] = [:]
  private var expected = CircularBuffer<Expected>()
  private var isBeatDue = false
  /// The time of the last beat; `nil` before the first.
  private var beatAt: BootInstant?
  private var replyDeadline = LateReplyDeadline()
  private var heartbeat: RepeatedTask?
  private var observers: [@Sendable (Event) -> Void] = []
  private var isHearing = false
  /// The reason for which Semel may not publish, as last seen; `nil` if it may.
  private var publishRefusal: String?
  /// Whether observers were notified that invalidations arrive.
  private var isCoherent = false
  private var inspections: RepeatedTask?
  private var loops: [RedisNodes] = []
  /// The nodes of a cluster that may carry the subscriptions, and the turn of the next one.
  private var nodes: [ServerAddress] = []
  private var turn = 0
  /// Whether `nodes` are masters, not only the addresses that are configured.
  private var knowsMasters = false
  private var doubts: [String] = []
  let epoch = RedisEpoch()
  let warnings: RedisWarnings
  let alarm: RedisAlarm
  private let doubtCount = Atomic<Int>(0)

  /// Creates the subscriber, which begins to connect at once.
  public init(context: EventLoopContext, settings: RedisEndpointSettings, logger: Logger) {
    self.context = context
    self.logger = logger
    warnings = RedisWarnings(logger: logger)
    alarm = RedisAlarm(logger: logger)
    keys = RedisKeys(namespace: settings.namespace)
    var address: ServerAddress? = settings.address
    switch settings.topology {
    case .standalone: break
    case .sentinel: address = nil
    case .cluster(let seeds):
      nodes = seeds
      address = seeds[0]
    }
    link = RedisLink(
      context: context, settings: settings, purpose: .subscriptions, address: address, logger: logger)
    if case .sentinel(let sentinels, let master, let login) = settings.topology {
      sentinel = SentinelMonitor(
        context: context, settings: settings, sentinels: sentinels, master: master, login: login,
        logger: logger)
    } else {
      sentinel = nil
    }
    link.user = self
    sentinel?.lead(link)
    context.loop.execute { self.start() }
  }

  /// The counters of the subscription connection. Safe from any thread.
  public var counters: RedisCounters { link.counters }

  /// Calls `observer` with every event, on the subscriber's loop and in order. The first event is `up` if invalidations
  /// already arrive. Safe from any thread.
  public func observe(_ observer: @escaping @Sendable (Event) -> Void) {
    context.loop.execute {
      self.observers.append(observer)
      if self.isCoherent { observer(.up) }
    }
  }

  /// Calls `observer` whenever the leases of all live claims must be renewed at once: another server has taken over, or
  /// Redis' clock was set. Safe from any thread.
  public func observeAlarms(_ observer: @escaping @Sendable () -> Void) { alarm.observe(observer) }

  /// Ends the subscriptions. Safe from any thread.
  public func close() {
    context.loop.execute {
      self.heartbeat?.cancel()
      self.inspections?.cancel()
      self.loops = []
      self.sentinel?.close()
      self.link.close()
    }
  }

  /// Adds an event loop's connections to those through which Redis is inspected. Safe from any thread.
  func enlist(_ nodes: RedisNodes) {
    context.loop.execute { self.loops.append(nodes) }
  }

  /// Takes the masters of a cluster's slots. A subscription at another node moves: that node may have lost the others,
  /// and then hears nothing. One event loop's map counts, since nodes may disagree for a moment. Safe from any thread.
  func learn(_ masters: [ServerAddress], by loop: RedisNodes) {
    context.loop.execute {
      guard loop === self.loops.first, self.nodes != masters, let other = masters.randomElement() else {
        return
      }
      let (before, after) = (Set(self.nodes), Set(masters))
      if self.knowsMasters, !before.subtracting(after).isEmpty, !after.subtracting(before).isEmpty {
        self.counters.failedOver()
      }
      self.knowsMasters = true
      self.nodes = masters
      guard let present = self.link.address, !after.contains(present) else { return }
      self.link.move(to: other)
    }
  }

  /// The number of reasons for which this Redis may lose records or leave caches stale. Safe from any thread.
  public var doubtsStanding: Int { doubtCount.load(ordering: .relaxed) }
  /// The number of times that Redis came back without its records. Safe from any thread.
  public var lossCount: Int { epoch.lossCount }

  /// The number of times that another server took over from a master. Safe from any thread.
  public var failovers: Int { link.counters.failovers + (sentinel?.failovers ?? 0) }

  private func start() {
    context.loop.assertInEventLoop()
    link.start()
    heartbeat = context.loop.scheduleRepeatedTask(initialDelay: Self.beatInterval, delay: Self.beatInterval) {
      _ in self.beat()
    }
    let interval = TimeAmount.milliseconds(link.settings.inspectionInterval.count)
    inspections = context.loop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in
      self.inspect()
    }
  }

  private func beat() {
    context.loop.assertInEventLoop()
    guard link.isUp else { return }
    let now = BootInstant.now
    let due = beatAt.map { $0 + Milliseconds(Self.beatInterval.nanoseconds / 1_000_000) } ?? now
    beatAt = now
    if isBeatDue {
      if case .readUntil = replyDeadline.verdict(due: due, now: now, hasUnread: link.hasUnread) { return }
      return link.fail("Redis did not reply to a ping on the subscription's connection")
    }
    isBeatDue = true
    send(["PING"], .beat)
  }

  /// Stops a debug build that calls from another thread.
  func assertOnLoop() { context.loop.assertInEventLoop() }

  private func send(_ command: [String], _ expectation: Expected) {
    expected.append(expectation)
    link.append { $0.writeCommand(command) }
  }

  private func notify(_ event: Event) {
    for observer in observers { observer(event) }
  }
}

extension RedisSubscriber {
  /// Subscribes to the ends of a record, on the watcher's loop. Returns once Redis has confirmed the subscription.
  func watch(_ id: RecordID, on watcher: EventLoopContext) async throws(StoreError) -> RedisWatch {
    let watch = RedisWatch(id: id, context: watcher, subscriber: self)
    context.loop.execute { self.enter(watch) }
    await watch.changed(within: link.settings.timeout)
    // Either loop may have stood still, with the confirmation still in the socket.
    if case .requested = watch.beginning { await watch.changed(within: link.settings.timeout) }
    switch watch.beginning {
    case .confirmed: return watch
    case .requested:
      leave(watch)
      throw .unavailable("Redis did not confirm a subscription in \(link.settings.timeout.count) ms")
    case .failed(let reason):
      leave(watch)
      throw .unavailable(reason)
    }
  }

  private func enter(_ watch: RedisWatch) {
    context.loop.assertInEventLoop()
    if link.isOutageLong { return watch.begin(.failed(link.outage?.reason ?? "Redis is not connected")) }
    let channel = keys.channel(watch.id)
    let topic: RedisTopic
    if let known = topics[channel] {
      topic = known
    } else {
      topic = RedisTopic()
      topics[channel] = topic
      // Without a connection, the next one subscribes to the topic at its start.
      if link.isUp { send(["SUBSCRIBE", channel], .topic(topic)) }
    }
    topic.watches[ObjectIdentifier(watch)] = watch
    if topic.isSubscribed {
      watch.begin(.confirmed)
    } else {
      topic.unconfirmed.insert(ObjectIdentifier(watch))
    }
  }

  /// Ends a watch. Safe from any thread.
  func leave(_ watch: RedisWatch) {
    context.loop.execute {
      let channel = self.keys.channel(watch.id)
      guard let topic = self.topics[channel] else { return }
      topic.watches[ObjectIdentifier(watch)] = nil
      topic.unconfirmed.remove(ObjectIdentifier(watch))
      guard topic.watches.isEmpty else { return }
      self.topics[channel] = nil
      if self.link.isUp { self.send(["UNSUBSCRIBE", channel], .leaving) }
    }
  }
}

extension RedisSubscriber {
  func linkIsUp(_ result: RedisHandshakeResult) -> String? {
    context.loop.assertInEventLoop()
    take(publishRefusal: result.publishRefusal)
    send(["SUBSCRIBE", keys.invalidations], .invalidations)
    for (channel, topic) in topics { send(["SUBSCRIBE", channel], .topic(topic)) }
    return nil
  }

  func linkReceived(_ reply: borrowing HiredisReply) {
    context.loop.assertInEventLoop()
    let value = reply.value
    if case .array(let members) = value, members.count == 3, members[0] == .text("message"),
      let channel = members[1].text, let payload = members[2].text
    {
      return pushed(channel, payload)
    }
    guard let expectation = expected.popFirst() else {
      return link.fail("Redis sent an unexpected reply")
    }
    if case .error(let text) = value {
      refused(expectation, RedisRefusal.advice(text))
    } else {
      done(expectation)
    }
  }

  private func pushed(_ channel: String, _ payload: String) {
    guard channel != keys.invalidations else {
      if payload == RedisKeys.renewal { return alarm.renewLeases() }
      guard let digest = Digest256(text: payload) else { return }
      return notify(.invalidated(RecordID(digest)))
    }
    guard let topic = topics[channel] else { return }
    for (name, watch) in topic.watches where !topic.unconfirmed.contains(name) { watch.wake() }
  }

  private func done(_ expectation: Expected) {
    switch expectation {
    case .leaving: break
    case .beat:
      isBeatDue = false
      replyDeadline.hasRead()
    case .invalidations:
      isHearing = true
      notifyCoherence()
    case .topic(let topic):
      topic.isSubscribed = true
      for (name, watch) in topic.watches {
        // A watch from an earlier connection may have missed a message.
        if topic.unconfirmed.remove(name) != nil { watch.begin(.confirmed) } else { watch.wake() }
      }
    }
  }

  private func refused(_ expectation: Expected, _ reason: String) {
    switch expectation {
    case .leaving: break
    case .beat: isBeatDue = false
    case .invalidations:
      logger.error("Redis refuses the subscription to invalidations", metadata: ["reason": "\(reason)"])
    case .topic(let topic):
      for (name, watch) in topic.watches {
        if topic.unconfirmed.remove(name) != nil { watch.begin(.failed(reason)) } else { watch.wake() }
      }
    }
  }

  func linkReadAll() {}
  func linkWrote() {}

  func linkIsDown(_ reason: String) {
    context.loop.assertInEventLoop()
    expected.removeAll()
    isBeatDue = false
    if !nodes.isEmpty {
      turn += 1
      link.aim(at: nodes[turn % nodes.count])
    }
    for topic in topics.values { topic.isSubscribed = false }
    isHearing = false
    notifyCoherence()
  }
}

/// The inspection of Redis while the connections are established.
extension RedisSubscriber {
  private func inspect() {
    guard let nodes = loops.first else { return }
    nodes.context.loop.execute { [context] in
      nodes.inspect { inspection in
        guard let inspection else { return }
        context.loop.execute { self.take(inspection) }
      }
    }
  }

  private func take(_ inspection: RedisInspection) {
    context.loop.assertInEventLoop()
    for (key, epoch) in inspection.epochs { found(epoch, under: key) }
    take(publishRefusal: inspection.publishRefusal)
    if doubts.isEmpty != inspection.doubts.isEmpty, inspection.doubts.isEmpty {
      logger.notice("Redis keeps its records again", metadata: ["after": "\(doubts.joined(separator: "; "))"])
    }
    if !link.settings.requireDurable {
      for doubt in inspection.doubts where !doubts.contains(doubt) { warnings.warn(doubt) }
    }
    doubts = inspection.doubts
    warnings.hinder(inspection.obstacle)
    count()
    judge()
  }

  /// Passes the present findings to every event loop.
  private func judge() {
    for nodes in loops { nodes.context.loop.execute { [doubts] in nodes.judge(doubts: doubts) } }
  }

  /// Takes an epoch that was read. Safe from any thread.
  func found(_ found: String, under key: String) {
    let finding = epoch.seen(found, under: key)
    if let loss = finding.loss { report(loss) }
    guard let successor = finding.successor else { return }
    context.loop.execute {
      guard let nodes = self.loops.first else { return }
      nodes.context.task { [epoch = self.epoch] in
        // If this fails, the next inspection finds the same epoch.
        let present = try? await nodes.fact(.epoch, under: key, expected: found, value: successor)
        if let present { epoch.replaced(found, by: present, under: key) }
      }
    }
  }

  /// Logs a loss, empties the caches, and stops claims if `require_durable` is set. Safe from any thread.
  private func report(_ loss: String) {
    logger.critical(
      "recorded outcomes are gone, and retries of their requests run again: Redis was emptied, or came back without its file",
      metadata: ["what": "\(loss)"])
    context.loop.execute {
      // The cached outcomes belong to records that no other node has any more.
      if self.isCoherent {
        self.notify(.down)
        self.notify(.up)
      }
      self.judge()
    }
  }

  private func take(publishRefusal refusal: String?) {
    if let refusal, publishRefusal == nil {
      logger.error(
        "Redis does not let Semel publish: other nodes may go on replaying forgotten and resolved records from their caches, and this node does not use its own; allow +publish on the channels \(keys.prefix)* and \(keys.invalidations)",
        metadata: ["reason": "\(refusal)"])
    } else if refusal == nil, publishRefusal != nil {
      logger.notice("Redis lets Semel publish again")
    }
    publishRefusal = refusal
    count()
    notifyCoherence()
  }

  private func count() {
    doubtCount.store(doubts.count + (publishRefusal == nil ? 0 : 1), ordering: .relaxed)
  }

  /// Notifies the observers of a change. A cache may be used only while the invalidations of other nodes arrive, and
  /// this node may publish its own.
  private func notifyCoherence() {
    let isCoherentNow = isHearing && publishRefusal == nil
    guard isCoherentNow != isCoherent else { return }
    isCoherent = isCoherentNow
    notify(isCoherentNow ? .up : .down)
  }
}

import Idempotency
import Logging
import NIOCore
import Platform
import Wire

/// The subscription connection of the process, for the ends of records that tasks wait for and the invalidations of all
/// nodes' caches. Each message is sent to a node once.
///
/// Confined to the loop of its context, except for the members that are marked as safe from any thread.
public final class RedisSubscriber: RedisLinkUser, @unchecked Sendable {
  /// The commands whose replies are awaited, with messages in between.
  private enum Expected {
    case topic(RedisTopic)
    case invalidations, leaving, beat
  }

  /// The interval of pings. A dead connection is detected, and a cache used, within two of them.
  private static let beatInterval: TimeAmount = .seconds(1)

  private let context: EventLoopContext
  private let link: RedisLink
  /// The Sentinels; `nil` in any other topology.
  let sentinel: SentinelMonitor?
  private let keys: RedisKeys
  let inspector: RedisInspector
  private let logger: Logger
  private var topics: [String: RedisTopic] = [:]
  private var watchCount = 0
  private var expected = CircularBuffer<Expected>()
  private var isBeatDue = false
  private var pingedAt = BootInstant(nanoseconds: 0)
  private var beatAt: BootInstant?
  private var replyDeadline = LateReplyDeadline()
  private var heartbeat: RepeatedTask?
  private var observers: [@Sendable (Event) -> Void] = []
  private var isHearing = false
  /// Whether Redis has refused the subscription to invalidations on this connection.
  private var isRefused = false
  private var isCoherent = false
  /// A cluster's nodes that may carry the subscriptions, and the turn of the next one.
  private var nodes: [ServerAddress] = []
  private var turn = 0
  private var knowsMasters = false
  let epoch: RedisEpoch
  let warnings: RedisWarnings
  let alarm: RedisAlarm
  let presences = RedisPresences()
  let indexPause: OpenIndexPause

  /// Creates the subscriber, which begins to connect at once.
  public init(context: EventLoopContext, settings: RedisEndpointSettings, logger: Logger) {
    self.context = context
    self.logger = logger
    alarm = RedisAlarm(logger: logger)
    indexPause = OpenIndexPause(span: settings.indexPause, logger: logger)
    keys = RedisKeys(namespace: settings.namespace)
    let inspector = RedisInspector(context: context, settings: settings, logger: logger)
    self.inspector = inspector
    epoch = inspector.epoch
    warnings = inspector.warnings
    var address: ServerAddress? = settings.address
    switch settings.topology {
    case .standalone: break
    case .sentinel: address = nil
    case .cluster(let seeds):
      nodes = seeds
      address = seeds[0]
    }
    link = RedisLink(
      context: context, settings: settings, purpose: .subscriptions, address: address, presences: presences,
      logger: logger)
    if case .sentinel(let sentinels, let master, let login) = settings.topology {
      sentinel = SentinelMonitor(
        context: context, settings: settings, sentinels: sentinels, master: master, login: login,
        logger: logger)
    } else {
      sentinel = nil
    }
    link.user = self
    // Both hold this subscriber until it is closed.
    inspector.didChangePublishing = { [self] in notifyCoherence() }
    inspector.didLoseRecords = { [self] in emptyCaches() }
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
      self.inspector.close()
      self.sentinel?.close()
      self.link.close()
    }
  }

  /// Adds an event loop's connections, for inspections. Safe from any thread.
  func enlist(_ nodes: RedisNodes) {
    context.loop.execute { self.inspector.enlist(nodes) }
  }

  /// Takes the masters of a cluster's slots. A subscription at another node moves: that node may have lost the others.
  /// One event loop's map counts. Safe from any thread.
  func learn(_ masters: [ServerAddress], by loop: RedisNodes) {
    context.loop.execute {
      guard loop === self.inspector.loops.first, self.nodes != masters, let other = masters.randomElement()
      else { return }
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
  public var doubtsStanding: Int { inspector.doubtsStanding }
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
    inspector.start()
  }

  private func beat() {
    context.loop.assertInEventLoop()
    guard link.isUp else { return }
    let now = BootInstant.now
    let due = beatAt.map { $0 + Milliseconds(Self.beatInterval) } ?? now
    beatAt = now
    if isBeatDue {
      if case .readUntil = replyDeadline.verdict(due: due, now: now, hasUnread: link.hasUnread) { return }
      return link.fail("Redis did not reply to a ping on the subscription's connection")
    }
    isBeatDue = true
    pingedAt = now
    send(["PING"], .beat)
    if isRefused { hear() }
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
  /// Subscribes to the ends of a record, on the watcher's loop.
  func watch(_ id: RecordID, on watcher: EventLoopContext) async throws(StoreError) -> RedisWatch {
    let watch = RedisWatch(id: id, context: watcher, subscriber: self)
    context.loop.execute { self.enter(watch) }
    await watch.changed(within: link.settings.timeout)
    // Either loop may have stood still.
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
    let topic = topics[channel] ?? RedisTopic()
    topics[channel] = topic
    // Without a connection, the next one subscribes at its start.
    if link.isUp, topic.subscription == .missing { subscribe(to: topic, on: channel) }
    invariant(watch.number == 0, "a watch is entered twice")
    watchCount += 1
    watch.number = watchCount
    topic.watches[watch.number] = watch
    if topic.subscription == .confirmed {
      watch.begin(.confirmed)
    } else {
      topic.unconfirmed.insert(watch.number)
    }
  }

  private func subscribe(to topic: RedisTopic, on channel: String) {
    topic.subscription = .requested
    send(["SUBSCRIBE", channel], .topic(topic))
  }

  /// Ends a watch. Safe from any thread.
  func leave(_ watch: RedisWatch) {
    context.loop.execute {
      let channel = self.keys.channel(watch.id)
      guard let topic = self.topics[channel] else { return }
      topic.watches[watch.number] = nil
      topic.unconfirmed.remove(watch.number)
      guard topic.watches.isEmpty else { return }
      self.topics[channel] = nil
      if self.link.isUp { self.send(["UNSUBSCRIBE", channel], .leaving) }
    }
  }
}

extension RedisSubscriber {
  func linkIsUp(_ result: RedisHandshakeResult, isBack: Bool) -> String? {
    context.loop.assertInEventLoop()
    inspector.take(publishRefusal: result.facts.publishRefusal)
    isRefused = false
    hear()
    for (channel, topic) in topics { subscribe(to: topic, on: channel) }
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

  private func hear() { send(["SUBSCRIBE", keys.invalidations], .invalidations) }

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
      if isCoherent { notify(.heard(pingedAt)) }
    case .invalidations:
      if isRefused { logger.notice("Redis lets Semel subscribe to invalidations again") }
      isRefused = false
      isHearing = true
      notifyCoherence()
    case .topic(let topic):
      topic.subscription = .confirmed
      for (name, watch) in topic.watches {
        // A message may have been missed.
        if topic.unconfirmed.remove(name) != nil { watch.begin(.confirmed) } else { watch.wake() }
      }
    }
  }

  private func refused(_ expectation: Expected, _ reason: String) {
    switch expectation {
    case .leaving: break
    case .beat: isBeatDue = false
    case .invalidations:
      guard !isRefused else { return }
      isRefused = true
      logger.error(
        "Redis refuses the subscription to invalidations, without which no cache is used; it is requested again with each ping",
        metadata: ["reason": "\(reason)"])
    case .topic(let topic):
      // The next watch subscribes anew, and wakes those that stay.
      topic.subscription = .missing
      for (name, watch) in topic.watches {
        if topic.unconfirmed.remove(name) != nil { watch.begin(.failed(reason)) } else { watch.wake() }
      }
    }
  }

  func linkIsDown(_ reason: String) {
    context.loop.assertInEventLoop()
    expected.removeAll()
    isBeatDue = false
    if !nodes.isEmpty {
      turn += 1
      link.aim(at: nodes[turn % nodes.count])
    }
    for topic in topics.values { topic.subscription = .missing }
    isHearing = false
    notifyCoherence()
  }
}

extension RedisSubscriber {
  /// A cache may be used only while the invalidations of other nodes arrive, and this node may publish its own.
  private func notifyCoherence() {
    let isCoherentNow = isHearing && inspector.facts.publishRefusal == nil
    guard isCoherentNow != isCoherent else { return }
    isCoherent = isCoherentNow
    notify(isCoherentNow ? .up : .down)
  }

  /// Has the observers drop all cached outcomes: their remaining times are no longer right, or a server has taken over
  /// that may lack their records. Safe to call on any loop.
  func dropCachedOutcomes() {
    context.loop.execute { self.emptyCaches() }
  }

  private func emptyCaches() {
    guard isCoherent else { return }
    notify(.down)
    notify(.up)
  }
}

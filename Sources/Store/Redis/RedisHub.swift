import Idempotency
import Logging
import Loop
import NIOCore
import Synchronization

/// The subscription connection of the process. It receives the ends of the records that tasks wait for, and the
/// invalidations of all nodes' caches.
///
/// There is one for all event loops, so that each message is sent to a node once; it is not on the hot path. It is
/// confined to the loop of its context, except for the members that are marked as safe from any thread.
public final class RedisHub: RedisLinkUser, @unchecked Sendable {
  /// An event for a cache of completed outcomes.
  public enum Event: Sendable, Equatable {
    /// From now on every invalidation arrives. Entries from before may be stale.
    case up
    /// From now on invalidations may be missed.
    case down
    case invalidated(RecordID)
  }

  /// The watches on one record, which share one subscription.
  private final class Topic {
    var watches: [ObjectIdentifier: RedisWatch] = [:]
    /// The watches that wait for the confirmation of the subscription.
    var asked: Set<ObjectIdentifier> = []
    var isSubscribed = false
  }

  /// The command that a reply belongs to. Replies arrive in the order of the commands, with messages in between.
  private enum Expected {
    case invalidations
    case topic(Topic)
    case leaving
    case beat
  }

  /// The interval of pings. A dead connection is detected within two intervals, during which the cache may replay an
  /// outcome that was forgotten on another node.
  private static let beatInterval: TimeAmount = .seconds(1)
  /// The minimum time between two equal warnings, which would otherwise come from every loop's connection at each
  /// reconnection.
  private static let warningInterval = Milliseconds.seconds(60)

  private let context: EventLoopContext
  private let link: RedisLink
  private let keys: RedisKeys
  private let logger: Logger
  private var topics: [String: Topic] = [:]
  private var expected = CircularBuffer<Expected>()
  private var isBeatDue = false
  private var beatAt = BootInstant(nanoseconds: 0)
  private var patience = RedisPatience()
  private var heartbeat: RepeatedTask?
  private var observers: [@Sendable (Event) -> Void] = []
  private var isHearing = false
  /// The reason for which Semel may not publish, as last seen; `nil` if it may.
  private var publishRefusal: String?
  /// Whether observers were notified that invalidations arrive.
  private var isCoherent = false
  private var inspections: RepeatedTask?
  private var pipelines: [RedisPipeline] = []
  private var doubts: [String] = []
  let epoch = RedisEpoch()
  private let doubtCount = Atomic<Int>(0)
  private let warned = Mutex<[String: BootInstant]>([:])

  /// Creates the hub, which begins to connect at once.
  public init(context: EventLoopContext, settings: RedisEndpointSettings, logger: Logger) {
    self.context = context
    self.logger = logger
    keys = RedisKeys(namespace: settings.namespace)
    link = RedisLink(context: context, settings: settings, carriesRecords: false, logger: logger)
    link.user = self
    context.loop.execute { self.start() }
  }

  /// The counters of the subscription connection. Safe from any thread.
  public var counters: RedisCounters { link.counters }

  /// Calls `observer` with every event, on the hub's loop and in order. The first event is `up` if invalidations
  /// already arrive. Safe from any thread.
  public func observe(_ observer: @escaping @Sendable (Event) -> Void) {
    context.loop.execute {
      self.observers.append(observer)
      if self.isCoherent { observer(.up) }
    }
  }

  /// Ends the subscriptions. Safe from any thread.
  public func close() {
    context.loop.execute {
      self.heartbeat?.cancel()
      self.inspections?.cancel()
      self.pipelines = []
      self.link.close()
    }
  }

  /// Adds a pipeline to those through which Redis is inspected. Safe from any thread.
  func enlist(_ pipeline: RedisPipeline) {
    context.loop.execute { self.pipelines.append(pipeline) }
  }

  /// The number of reasons for which this Redis may lose records or leave caches stale. Safe from any thread.
  public var doubtsStanding: Int { doubtCount.load(ordering: .relaxed) }
  /// The number of times that Redis came back without its records. Safe from any thread.
  public var lossCount: Int { epoch.lossCount }

  /// Logs a warning about a Redis that may lose records. Safe from any thread.
  func warn(_ doubt: String) {
    guard isNews(doubt) else { return }
    logger.warning("REDIS MAY LOSE RECORDS, AND A LOST RECORD LETS A RETRY RUN TWICE: \(doubt)")
  }

  /// Logs that a Redis is refused. Safe from any thread.
  func refuse(_ reason: String) {
    guard isNews(reason) else { return }
    logger.error("REDIS IS REFUSED, AND NO PROTECTED REQUEST RUNS: \(reason)")
  }

  private func isNews(_ text: String) -> Bool {
    let now = BootInstant(nanoseconds: bootTimeNanoseconds())
    return warned.withLock { warned in
      if let last = warned[text], now - last < Self.warningInterval { return false }
      warned[text] = now
      return true
    }
  }

  private func start() {
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
    guard link.isUp else { return }
    let now = BootInstant(nanoseconds: bootTimeNanoseconds())
    let due = beatAt + Milliseconds(Self.beatInterval.nanoseconds / 1_000_000)
    beatAt = now
    if isBeatDue {
      if case .readUntil = patience.judge(due: due, now: now, hasUnread: link.hasUnread) { return }
      return link.fail("Redis did not answer a ping on the subscription's connection")
    }
    isBeatDue = true
    send(["PING"], .beat)
  }

  private func send(_ command: [String], _ expectation: Expected) {
    expected.append(expectation)
    link.append { $0.writeCommand(command) }
  }

  private func tell(_ event: Event) {
    for observer in observers { observer(event) }
  }
}

extension RedisHub {
  /// Subscribes to the ends of a record, on the watcher's loop. Returns once Redis has confirmed the subscription.
  func watch(_ id: RecordID, on watcher: EventLoopContext) async throws(StoreError) -> RedisWatch {
    let watch = RedisWatch(id: id, context: watcher, hub: self)
    context.loop.execute { self.enter(watch) }
    await watch.changed(within: link.settings.timeout)
    // Either loop may have stood still, with the confirmation still in the socket.
    if case .asked = watch.beginning { await watch.changed(within: link.settings.timeout) }
    switch watch.beginning {
    case .confirmed: return watch
    case .asked:
      leave(watch)
      throw .unavailable("Redis did not confirm a subscription in \(link.settings.timeout.count) ms")
    case .failed(let reason):
      leave(watch)
      throw .unavailable(reason)
    }
  }

  private func enter(_ watch: RedisWatch) {
    if link.isOutageLong { return watch.begin(.failed(link.outage?.reason ?? "Redis is not connected")) }
    let channel = keys.channel(watch.id)
    let topic: Topic
    if let known = topics[channel] {
      topic = known
    } else {
      topic = Topic()
      topics[channel] = topic
      // If not, the next connection subscribes to it at its start.
      if link.isUp { send(["SUBSCRIBE", channel], .topic(topic)) }
    }
    topic.watches[ObjectIdentifier(watch)] = watch
    if topic.isSubscribed { watch.begin(.confirmed) } else { topic.asked.insert(ObjectIdentifier(watch)) }
  }

  /// Ends a watch. Safe from any thread.
  func leave(_ watch: RedisWatch) {
    context.loop.execute {
      let channel = self.keys.channel(watch.id)
      guard let topic = self.topics[channel] else { return }
      topic.watches[ObjectIdentifier(watch)] = nil
      topic.asked.remove(ObjectIdentifier(watch))
      guard topic.watches.isEmpty else { return }
      self.topics[channel] = nil
      if self.link.isUp { self.send(["UNSUBSCRIBE", channel], .leaving) }
    }
  }
}

extension RedisHub {
  func linkIsUp(_ greeting: RedisGreeting) -> String? {
    take(publishRefusal: greeting.publishRefusal)
    send(["SUBSCRIBE", keys.invalidations], .invalidations)
    for (channel, topic) in topics { send(["SUBSCRIBE", channel], .topic(topic)) }
    return nil
  }

  func linkReceived(_ reply: borrowing HiredisReply) {
    let value = reply.value
    if case .array(let members) = value, members.count == 3, members[0] == .text("message"),
      let channel = members[1].text, let payload = members[2].text
    {
      return pushed(channel, payload)
    }
    guard let expectation = expected.popFirst() else {
      return link.fail("Redis sent a reply that nobody asked for")
    }
    if case .error(let text) = value {
      refused(expectation, RedisRefusal.advice(text))
    } else {
      done(expectation)
    }
  }

  private func pushed(_ channel: String, _ payload: String) {
    guard channel != keys.invalidations else {
      guard let digest = Digest256(text: payload) else { return }
      return tell(.invalidated(RecordID(digest)))
    }
    guard let topic = topics[channel] else { return }
    for (name, watch) in topic.watches where !topic.asked.contains(name) { watch.wake() }
  }

  private func done(_ expectation: Expected) {
    switch expectation {
    case .leaving: break
    case .beat:
      isBeatDue = false
      patience.hasRead()
    case .invalidations:
      isHearing = true
      tellCoherence()
    case .topic(let topic):
      topic.isSubscribed = true
      for (name, watch) in topic.watches {
        // A watch from an earlier connection may have missed a message.
        if topic.asked.remove(name) != nil { watch.begin(.confirmed) } else { watch.wake() }
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
        if topic.asked.remove(name) != nil { watch.begin(.failed(reason)) } else { watch.wake() }
      }
    }
  }

  func linkReadAll() {}

  func linkWrote() {}

  func linkIsDown(_ reason: String) {
    expected.removeAll()
    isBeatDue = false
    for topic in topics.values { topic.isSubscribed = false }
    isHearing = false
    tellCoherence()
  }
}

/// The inspection of Redis while the connections are established.
extension RedisHub {
  private func inspect() {
    guard let pipeline = pipelines.first else { return }
    pipeline.context.loop.execute { [context] in
      pipeline.inspect { inspection in
        guard let inspection else { return }
        context.loop.execute { self.take(inspection) }
      }
    }
  }

  private func take(_ inspection: RedisInspection) {
    if let found = inspection.epoch, let loss = epoch.lost(by: found) { report(loss) }
    take(publishRefusal: inspection.publishRefusal)
    if doubts.isEmpty != inspection.doubts.isEmpty, inspection.doubts.isEmpty {
      logger.notice("Redis keeps its records again", metadata: ["after": "\(doubts.joined(separator: "; "))"])
    }
    if !link.settings.requireDurable {
      for doubt in inspection.doubts where !doubts.contains(doubt) { warn(doubt) }
    }
    doubts = inspection.doubts
    count()
    judge()
  }

  /// Passes the present findings to every pipeline.
  private func judge() {
    let (doubts, loss) = (doubts, epoch.loss)
    for pipeline in pipelines {
      pipeline.context.loop.execute { if pipeline.link.isUp { pipeline.judge(doubts: doubts, loss: loss) } }
    }
  }

  /// Logs that records are gone, empties the caches, and stops claims if `require_durable` is set. Safe from any
  /// thread.
  func report(_ loss: String) {
    logger.critical(
      "RECORDED OUTCOMES ARE GONE, AND WHAT THEY ANSWERED RUNS AGAIN: the namespace's epoch is another, so Redis was emptied, or came back without its file",
      metadata: ["what": "\(loss)"])
    context.loop.execute {
      // The cached outcomes belong to records that no other node has any more.
      if self.isCoherent {
        self.tell(.down)
        self.tell(.up)
      }
      self.judge()
    }
  }

  private func take(publishRefusal refusal: String?) {
    if let refusal, publishRefusal == nil {
      logger.error(
        "REDIS DOES NOT LET SEMEL PUBLISH: what is forgotten or resolved here cannot be told to other nodes, whose caches may go on replaying it, and this node's own cache is passed by; allow +publish on the channels \(keys.prefix)* and \(keys.invalidations)",
        metadata: ["reason": "\(refusal)"])
    } else if refusal == nil, publishRefusal != nil {
      logger.notice("Redis lets Semel publish again")
    }
    publishRefusal = refusal
    count()
    tellCoherence()
  }

  private func count() {
    doubtCount.store(doubts.count + (publishRefusal == nil ? 0 : 1), ordering: .relaxed)
  }

  /// Notifies the observers of a change. A cache may be used only while the invalidations of other nodes arrive, and
  /// this node may publish its own.
  private func tellCoherence() {
    let isCoherentNow = isHearing && publishRefusal == nil
    guard isCoherentNow != isCoherent else { return }
    isCoherent = isCoherentNow
    tell(isCoherentNow ? .up : .down)
  }
}

import Idempotency
import Logging
import Loop
import NIOCore
import Synchronization

/// The process's one subscription connection: the ends of the records that somebody waits for, and what every
/// node's cache must forget. One for all loops, so that each push is sent to a node once; it is not on the hot path.
///
/// It lives on the loop of its context; what is said to be so may be called from any thread.
public final class RedisHub: RedisLinkUser, @unchecked Sendable {
  /// What a cache of completed records has to know.
  public enum Event: Sendable, Equatable {
    /// From here on every invalidation arrives; what was kept before may be stale.
    case up
    /// From here on invalidations may be missed.
    case down
    case invalidated(RecordID)
  }

  /// The watchers of one record, under one subscription.
  private final class Topic {
    var watches: [ObjectIdentifier: RedisWatch] = [:]
    /// Those among them that have not been told yet that the subscription stands.
    var asked: Set<ObjectIdentifier> = []
    var isSubscribed = false
  }

  /// What the replies in the order of the commands belong to; pushes come between them.
  private enum Expected {
    case invalidations
    case topic(Topic)
    case leaving
    case beat
  }

  /// A dead connection is found within two of these: so long a cache may answer what was forgotten elsewhere.
  private static let beatInterval: TimeAmount = .seconds(1)
  /// The same warning comes from every loop's connection, at each reconnection: once in this time is enough.
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
  /// Why nothing may be published, as it was last seen.
  private var publishRefusal: String?
  /// Whether observers were told that invalidations arrive.
  private var isCoherent = false
  private var inspections: RepeatedTask?
  private var pipelines: [RedisPipeline] = []
  private var doubts: [String] = []
  let epoch = RedisEpoch()
  private let doubtCount = Atomic<Int>(0)
  private let warned = Mutex<[String: BootInstant]>([:])

  /// Begins to connect at once.
  public init(context: EventLoopContext, settings: RedisEndpointSettings, logger: Logger) {
    self.context = context
    self.logger = logger
    keys = RedisKeys(namespace: settings.namespace)
    link = RedisLink(context: context, settings: settings, carriesRecords: false, logger: logger)
    link.user = self
    context.loop.execute { self.start() }
  }

  /// What there is to tell of the subscription's connection; from any thread.
  public var counters: RedisCounters { link.counters }

  /// Tells every event to `observer`, on the hub's loop and in order; `up` first where it is so already. From any
  /// thread.
  public func observe(_ observer: @escaping @Sendable (Event) -> Void) {
    context.loop.execute {
      self.observers.append(observer)
      if self.isCoherent { observer(.up) }
    }
  }

  /// Ends the subscriptions; from any thread.
  public func close() {
    context.loop.execute {
      self.heartbeat?.cancel()
      self.inspections?.cancel()
      self.pipelines = []
      self.link.close()
    }
  }

  /// Makes a pipeline's connection one of those that Redis is inspected by; from any thread.
  func enlist(_ pipeline: RedisPipeline) {
    context.loop.execute { self.pipelines.append(pipeline) }
  }

  /// The number of reasons for which this Redis may lose records or leave caches stale; from any thread.
  public var doubtsStanding: Int { doubtCount.load(ordering: .relaxed) }
  /// The number of times that Redis came back without its records; from any thread.
  public var lossCount: Int { epoch.lossCount }

  /// Warns of a Redis that may lose records; from any thread.
  func warn(_ doubt: String) {
    guard isNews(doubt) else { return }
    logger.warning("REDIS MAY LOSE RECORDS, AND A LOST RECORD LETS A RETRY RUN TWICE: \(doubt)")
  }

  /// Says that a Redis is not accepted; from any thread.
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
  /// Subscribes to the ends of a record, on the watcher's loop. Returns once Redis has confirmed it.
  func watch(_ id: RecordID, on watcher: EventLoopContext) async throws(StoreError) -> RedisWatch {
    let watch = RedisWatch(id: id, context: watcher, hub: self)
    context.loop.execute { self.enter(watch) }
    await watch.changed(within: link.settings.timeout)
    // Either loop may have stood still, with the confirmation in the socket.
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
      // Otherwise the coming connection begins with it.
      if link.isUp { send(["SUBSCRIBE", channel], .topic(topic)) }
    }
    topic.watches[ObjectIdentifier(watch)] = watch
    if topic.isSubscribed { watch.begin(.confirmed) } else { topic.asked.insert(ObjectIdentifier(watch)) }
  }

  /// Ends a subscription; from any thread.
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
        // Whoever was subscribed over another connection may have missed a push.
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

/// What is looked at again while the connections stand.
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

  /// Tells every connection what is known now.
  private func judge() {
    let (doubts, loss) = (doubts, epoch.loss)
    for pipeline in pipelines {
      pipeline.context.loop.execute { if pipeline.link.isUp { pipeline.judge(doubts: doubts, loss: loss) } }
    }
  }

  /// Reports that records are gone, empties the caches, and stops every claim where that is required; from any thread.
  func report(_ loss: String) {
    logger.critical(
      "RECORDED OUTCOMES ARE GONE, AND WHAT THEY ANSWERED RUNS AGAIN: the namespace's epoch is another, so Redis was emptied, or came back without its file",
      metadata: ["what": "\(loss)"])
    context.loop.execute {
      // What was kept here is of records that no other node has any more.
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

  /// A cache may be used while what other nodes invalidate arrives here, and what is invalidated here may be sent.
  private func tellCoherence() {
    let isCoherentNow = isHearing && publishRefusal == nil
    guard isCoherentNow != isCoherent else { return }
    isCoherent = isCoherentNow
    tell(isCoherentNow ? .up : .down)
  }
}

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
  private var heartbeat: RepeatedTask?
  private var observers: [@Sendable (Event) -> Void] = []
  private var isHearing = false
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
      if self.isHearing { observer(.up) }
    }
  }

  /// Ends the subscriptions; from any thread.
  public func close() {
    context.loop.execute {
      self.heartbeat?.cancel()
      self.link.close()
    }
  }

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
  }

  private func beat() {
    guard link.isUp else { return }
    guard !isBeatDue else { return link.fail("Redis did not answer a ping on the subscription's connection") }
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
    case .beat: isBeatDue = false
    case .invalidations:
      isHearing = true
      tell(.up)
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
    guard isHearing else { return }
    isHearing = false
    tell(.down)
  }
}

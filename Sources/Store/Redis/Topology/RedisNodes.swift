import Idempotency
import Logging
import NIOCore
import Platform
import Wire

/// The connections of one event loop to the servers that hold the records: a standalone server and a master that
/// Sentinels name have one, a cluster one for each master. Confined to its loop.
final class RedisNodes: @unchecked Sendable {
  let context: EventLoopContext
  let settings: RedisEndpointSettings
  let keys: RedisKeys
  let counters: RedisCounters
  let subscriber: RedisSubscriber
  let logger: Logger
  let shared = SharedClaims()
  let turns: ResponseTurns
  var readings: [String: ResponseReading] = [:]
  let single: RedisPipeline?
  var pipelines: [ServerAddress: RedisPipeline] = [:]
  /// The masters of a cluster's slots; `nil` until a node has named them.
  var map: SlotMap?
  var isReadingMap = false
  /// The number of the last reading, for the nodes' turns.
  var readingTurn = 0
  /// The reason for which no node has named the slots' masters.
  var mapFault: String?
  private var tags: [Int: String] = [:]
  /// The next reading while something is wrong, and the pause before the one after it.
  var trouble: Scheduled<Void>?
  var troublePause: Int64 = 250
  private var changeWaiters: [Signal] = []
  private(set) var comparison: RedisConditions.Comparison
  private(set) var isClosed = false
  var nextStepAt = BootInstant(nanoseconds: 0)
  /// The part of the last pause that the present step has not waited for, in nanoseconds; negative for too much.
  var carriedPause: Int64 = 0
  private(set) lazy var keeper = OpenRecordKeeper(of: self)

  init(
    context: EventLoopContext, settings: RedisEndpointSettings, logger: Logger, subscriber: RedisSubscriber,
    counters: RedisCounters
  ) {
    self.context = context
    self.counters = counters
    self.settings = settings
    self.logger = logger
    self.subscriber = subscriber
    keys = RedisKeys(namespace: settings.namespace)
    turns = ResponseTurns(timers: context.timers)
    comparison = RedisConditions(settings).comparison
    single =
      settings.topology.isCluster
      ? nil
      : Self.pipeline(
        context, settings, at: settings.topology.isStandalone ? settings.address : nil, counters, logger,
        subscriber, shared)
    single?.didChange = { [self] in
      counters.publish(topology: topologyText)
      changed()
    }
    if let single, let sentinel = subscriber.sentinel {
      sentinel.lead(single.link)
      // It may be an earlier master that has lost the others.
      single.didFallShort = { [link = single.link] in
        if let address = link.address { sentinel.masterFailed(address, $0) }
      }
    }
  }

  private static func pipeline(
    _ context: EventLoopContext, _ settings: RedisEndpointSettings, at address: ServerAddress?,
    _ counters: RedisCounters, _ logger: Logger, _ subscriber: RedisSubscriber, _ shared: SharedClaims
  ) -> RedisPipeline {
    let link = RedisLink(
      context: context, settings: settings, purpose: .records, address: address, counters: counters,
      isOnly: !settings.topology.isCluster, presences: subscriber.presences, logger: logger)
    return RedisPipeline(link: link, subscriber: subscriber, shared: shared)
  }

  func start() {
    context.loop.assertInEventLoop()
    guard !isClosed else { return }
    single?.start()
    guard settings.topology.isCluster else { return }
    connectToSeeds()
    watchMap()
  }

  func close() {
    context.loop.assertInEventLoop()
    isClosed = true
    trouble?.cancel()
    single?.close()
    for pipeline in pipelines.values { pipeline.close() }
    pipelines = [:]
    changed()
  }

  func take(_ comparison: RedisConditions.Comparison) {
    context.loop.assertInEventLoop()
    self.comparison = comparison
    for pipeline in all { pipeline.take(comparison) }
  }

  var all: [RedisPipeline] { single.map { [$0] } ?? Array(pipelines.values) }

  /// The connection to a node of a cluster.
  func pipeline(at address: ServerAddress) -> RedisPipeline {
    context.loop.assertInEventLoop()
    if let known = pipelines[address] { return known }
    let made = Self.pipeline(context, settings, at: address, counters, logger, subscriber, shared)
    pipelines[address] = made
    made.take(comparison)
    guard !isClosed else { return made }
    made.didChange = { [self] in clusterChanged() }
    made.didRefuse = { [self] in refused($0) }
    made.didFallShort = { [self] _ in readMap() }
    made.start()
    return made
  }

  /// Inspects the running servers; `onFacts` gets `nil` if none has replied.
  func inspect(_ onFacts: @escaping (RedisFacts?) -> Void) {
    context.loop.assertInEventLoop()
    let nodes = (single.map { [$0] } ?? masters).filter(\.link.isUp)
    guard !nodes.isEmpty else { return onFacts(nil) }
    var (left, all): (Int, RedisFacts?) = (nodes.count, nil)
    for node in nodes {
      node.inspect(factsKey: factsKey(of: node.link.address)) { found in
        left -= 1
        if let found { all = all?.joined(with: found) ?? found }
        if left == 0 { onFacts(all) }
      }
    }
  }

  /// The key of the facts about a server, which it has itself, in a cluster. It moves with its slot.
  func factsKey(of address: ServerAddress?) -> String {
    guard let map, let slot = map.firstSlots.first(where: { $0.master == address })?.slot else {
      return keys.facts
    }
    let tag = tags[slot] ?? SlotMap.tag(of: slot)
    tags[slot] = tag
    return keys.facts(tag)
  }

  var topologyText: String? {
    func state(_ node: RedisPipeline) -> String { "\(node.name) (\(node.link.isUp ? "up" : "down"))" }
    switch settings.topology {
    case .standalone: return single.map { "standalone, \(state($0))" }
    case .sentinel: return single.flatMap { $0.link.address == nil ? nil : "sentinel, master \(state($0))" }
    case .cluster:
      guard let map else { return nil }
      let nodes = masters.sorted { $0.name < $1.name }.map(state).joined(separator: ", ")
      return "cluster, masters \(nodes)"
        + (map.uncoveredCount > 0 ? ", \(map.uncoveredCount) slots unserved" : "")
    }
  }

  func judge(_ facts: RedisFacts) {
    context.loop.assertInEventLoop()
    for pipeline in all where pipeline.link.isUp { pipeline.inspected(facts) }
  }

  func changed() {
    context.loop.assertInEventLoop()
    let waiters = changeWaiters
    changeWaiters = []
    for waiter in waiters { waiter.set() }
  }

  func change(by deadline: BootInstant) async {
    context.loop.assertInEventLoop()
    let left = deadline - BootInstant.now
    guard left > 0 else { return }
    let signal = Signal(timers: context.timers)
    changeWaiters.append(signal)
    guard case .timedOut = await signal.wait(milliseconds: left.count) else { return }
    changeWaiters.removeAll { $0 === signal }
  }

  func waitUntilPast(_ deadline: BootInstant) async {
    let left = deadline - BootInstant.now
    if left > 0 { await context.sleep(milliseconds: left.count + 1) }
  }
}

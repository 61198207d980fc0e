import Idempotency
import Logging
import NIOCore
import Platform
import Wire

/// The connections of one event loop to the servers that hold the records, and the way of each command to one of them.
/// Confined to its loop.
///
/// A standalone server and a master that Sentinels name have one connection, a cluster one for each master.
final class RedisNodes: @unchecked Sendable {
  let context: EventLoopContext
  let settings: RedisEndpointSettings
  let keys: RedisKeys
  /// The counters of all connections. Safe from any thread.
  let counters: RedisCounters
  let subscriber: RedisSubscriber
  let logger: Logger
  /// The claims that share a command with an earlier one.
  let shared = SharedClaims()
  /// The turns of the responses that have keys of their own.
  let turns: ResponseTurns
  /// The readings of such responses that are under way, by their keys.
  var readings: [String: ResponseReading] = [:]
  /// The only connection; `nil` in a cluster.
  let single: RedisPipeline?
  /// The connections to a cluster's nodes.
  var pipelines: [ServerAddress: RedisPipeline] = [:]
  /// The masters of the slots; `nil` until a node has named them, and outside a cluster.
  var map: SlotMap?
  /// Whether a reply with the slot map is awaited.
  var isReadingMap = false
  /// The number of the last reading, by which the nodes take turns.
  var readingTurn = 0
  /// The reason for which no node has named the slots' masters; `nil` if one has, or none was reached.
  var mapFault: String?
  /// The hash tags of slots, which take a search.
  private var tags: [Int: String] = [:]
  /// The next reading while something is wrong, and the pause before the one after it, in milliseconds.
  var trouble: Scheduled<Void>?
  var troublePause: Int64 = 250
  private var changeWaiters: [Signal] = []
  private(set) var comparison: RedisConditions.Comparison
  private(set) var isClosed = false
  /// The time from which a walk over the keys may continue.
  var nextStepAt = BootInstant(nanoseconds: 0)
  /// The part of the last pause that the present step has not waited for, in nanoseconds; negative if it waited for
  /// longer.
  var carriedPause: Int64 = 0
  /// This loop's part in the index of open records.
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
    switch settings.topology {
    case .cluster: single = nil
    case .sentinel:
      single = Self.pipeline(
        context, settings, at: nil, counters, isOnly: true, logger, subscriber, shared)
    case .standalone:
      single = Self.pipeline(
        context, settings, at: settings.address, counters, isOnly: true, logger, subscriber, shared)
    }
    single?.didChange = { [self] in
      counters.publish(topology: topologyText)
      changed()
    }
    if let single, let sentinel = subscriber.sentinel {
      sentinel.lead(single.link)
      // The server may be an earlier master that has lost contact with the others.
      single.didFallShort = { [link = single.link] in
        if let address = link.address { sentinel.masterFailed(address, $0) }
      }
    }
  }

  private static func pipeline(
    _ context: EventLoopContext, _ settings: RedisEndpointSettings, at address: ServerAddress?,
    _ counters: RedisCounters, isOnly: Bool, _ logger: Logger, _ subscriber: RedisSubscriber,
    _ shared: SharedClaims
  ) -> RedisPipeline {
    let link = RedisLink(
      context: context, settings: settings, purpose: .records, address: address, counters: counters,
      isOnly: isOnly, presences: subscriber.presences, logger: logger)
    return RedisPipeline(context: context, link: link, subscriber: subscriber, shared: shared)
  }

  func start() {
    context.loop.assertInEventLoop()
    guard !isClosed else { return }
    single?.start()
    guard case .cluster = settings.topology else { return }
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

  /// Takes the comparison of the configuration with its namespace's.
  func take(_ comparison: RedisConditions.Comparison) {
    context.loop.assertInEventLoop()
    self.comparison = comparison
    for pipeline in all { pipeline.take(comparison) }
  }

  /// The connections, those to nodes of a cluster in no order.
  var all: [RedisPipeline] { single.map { [$0] } ?? Array(pipelines.values) }

  /// The connection to a node of a cluster, which is established if there is none.
  func pipeline(at address: ServerAddress) -> RedisPipeline {
    context.loop.assertInEventLoop()
    if let known = pipelines[address] { return known }
    let made = Self.pipeline(
      context, settings, at: address, counters, isOnly: false, logger, subscriber, shared)
    pipelines[address] = made
    made.take(comparison)
    guard !isClosed else { return made }
    made.didChange = { [self] in clusterChanged() }
    made.didRefuse = { [self] in refused($0) }
    made.didFallShort = { [self] _ in readMap() }
    made.start()
    return made
  }

  /// Inspects the running servers, and calls `onFacts` with the facts together, or with `nil` if no server has replied.
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

  /// The key of the facts about a server, which it has itself. It moves with its slot, which the server's others may
  /// leave.
  ///
  /// - Parameter address: The server's address; `nil` outside a cluster.
  func factsKey(of address: ServerAddress?) -> String {
    guard let map, let slot = map.firstSlots.first(where: { $0.master == address })?.slot else {
      return keys.facts
    }
    let tag = tags[slot] ?? SlotMap.tag(of: slot)
    tags[slot] = tag
    return keys.facts(tag)
  }

  /// The servers that hold the records now, for a person; `nil` while none is known.
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

  /// Takes the facts about the servers together.
  func judge(_ facts: RedisFacts) {
    context.loop.assertInEventLoop()
    for pipeline in all where pipeline.link.isUp { pipeline.inspected(facts) }
  }

  /// Wakes the calls that wait for a connection or for the slot map.
  func changed() {
    context.loop.assertInEventLoop()
    let waiters = changeWaiters
    changeWaiters = []
    for waiter in waiters { waiter.set() }
  }

  /// Waits for a change until then.
  func change(by deadline: BootInstant) async {
    context.loop.assertInEventLoop()
    let left = deadline - BootInstant.now
    guard left > 0 else { return }
    let signal = Signal(timers: context.timers)
    changeWaiters.append(signal)
    guard case .timedOut = await signal.wait(milliseconds: left.count) else { return }
    changeWaiters.removeAll { $0 === signal }
  }

  /// Waits until no copy of a claim can be executed any more.
  func waitUntilPast(_ deadline: BootInstant) async {
    let left = deadline - BootInstant.now
    if left > 0 { await context.sleep(milliseconds: left.count + 1) }
  }
}

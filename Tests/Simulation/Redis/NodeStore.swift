import Idempotency
import Logging
import Platform
import Settings
import Store

/// A node's way to the store of its world, and the node's cache above it.
struct NodeStore {
  /// The store of each loop.
  let loops: [WorldStore]
  let cache: LocalCache
  private let subscriber: RedisSubscriber?

  init(
    of world: World, _ settings: StoreSettings, _ contexts: [EventLoopContext], _ simLoops: [SimLoop],
    _ logger: Logger
  ) {
    guard case .redis(let redis) = settings.place, world.redis != nil else {
      cache = LocalCache(capacityBytes: 1 << 20)
      subscriber = nil
      loops = zip(contexts, simLoops).map { .memory(SimStore(world.store, $0, $1)) }
      return
    }
    // As in the program: the cache is bypassed until the subscription stands.
    let cache = LocalCache(capacityBytes: 1 << 20, isSubscribed: false)
    let endpoint = RedisEndpointSettings(redis, in: settings)
    let subscriber = RedisSubscriber(context: contexts[0], settings: endpoint, logger: logger)
    subscriber.observe { cache.follow($0) }
    (self.cache, self.subscriber) = (cache, subscriber)
    loops = contexts.map {
      .redis(RedisStore(context: $0, settings: endpoint, logger: logger, subscriber: subscriber))
    }
  }

  /// Calls an observer whenever all leases have to be renewed at once.
  func observeAlarms(_ observer: @escaping @Sendable () -> Void) { subscriber?.observeAlarms(observer) }

  /// The number of times that the node saw another server take over.
  var failovers: Int { subscriber?.failovers ?? 0 }
}

extension LocalCache {
  fileprivate func follow(_ event: RedisSubscriber.Event) {
    switch event {
    case .up: subscriptionUp()
    case .down: subscriptionDown()
    case .heard(let moment): heardInvalidations(from: moment)
    case .invalidated(let id): invalidate(id)
    }
  }
}

extension RedisEndpointSettings {
  /// Those of a configuration without logins.
  fileprivate init(_ redis: RedisSettings, in store: StoreSettings) {
    self.init(address: redis.endpoints[0])
    switch redis.topology {
    case .standalone: topology = .standalone
    case .sentinel(let nodes, let master):
      topology = .sentinel(nodes, master: master, login: RedisLogin())
    case .cluster(let nodes): topology = .cluster(nodes)
    }
    timeout = store.timeout
    namespace = store.namespace
    failoverGrace = redis.copies.failoverGrace
    demand = ReplicaDemand(replicas: redis.copies.replicas)
  }
}

import Idempotency
import NIOCore
import Platform
import TestSupport

@testable import Store

extension StoreUnderTest {
  static let redis = StoreUnderTest("Redis") {
    Opened(on: RedisNode(.on(try await SharedRedis.server)))
  }

  /// A server of the test's own, whose clock it sets.
  static let redisWithOwnClock = StoreUnderTest("Redis with a clock of its own") {
    let clock = try await SteppedClock()
    let server = try await RedisServer(clock: clock)
    var opened = Opened(.on(server))
    opened.setClock = { seconds in
      // The server ends with its last reference.
      _ = server
      try clock.set(ahead: seconds)
    }
    return opened
  }
}

extension StoreUnderTest.Opened {
  /// The store of a node with these settings, and the same data as another node has it.
  init(_ settings: RedisEndpointSettings) { self.init(on: RedisNode(settings)) }

  /// The store of a node, and the same data as another node has it.
  init(on node: RedisNode) {
    let sibling = node.sibling()
    self.init(
      store: node.store, other: sibling.store, facts: node.store.store,
      otherFacts: sibling.store.store
    ) {
      node.close()
      sibling.close()
    } successor: {
      // The epoch of a namespace that has lost records once.
      _ = sibling.subscriber.epoch.seen("1.successor", under: "successor")
      return sibling.store
    }
  }
}

import Idempotency
import NIOCore
import Platform
import TestSupport

@testable import Store

extension StoreUnderTest {
  static let redis = StoreUnderTest("Redis") {
    Opened(on: RedisNode(.on(try await SharedRedis.server)))
  }

  static let loadedRedis = StoreUnderTest("Redis under load") {
    Opened(on: RedisNode(.on(try await SharedRedis.server).loaded))
  }
}

extension RedisNode {
  /// Makes the estimate of the server's clock good enough. On a busy machine that takes more than one reply.
  func warm() async throws {
    try await reconnected()
    let (nodes, loop) = (store.store.nodes, store.context.loop)
    try await until("the server's time is known well enough") {
      try await store.ping()
      return try await loop.submit {
        nodes.all.allSatisfy { $0.clock.latest(at: .now, maxAge: .seconds(60)) != nil }
      }.get()
    }
  }
}

extension RedisEndpointSettings {
  /// The same settings, by which each connection is under load.
  var loaded: RedisEndpointSettings {
    var settings = patient
    settings.load.minPending = 0
    return settings
  }

  /// The same settings, or these.
  func loaded(_ isLoaded: Bool) -> RedisEndpointSettings { isLoaded ? loaded : self }

  /// The same settings, by which Redis' time is known for as long as a test takes.
  var patient: RedisEndpointSettings {
    var settings = self
    (settings.load.maxClaimAge, settings.load.maxCompletionAge) = (.seconds(60), .seconds(60))
    return settings
  }
}

extension StoreUnderTest.Opened {
  /// The store of a node, and the same data as another node has it.
  ///
  /// - Parameter loaded: The settings of the first one, under load; the other one is under none.
  init(loaded settings: RedisEndpointSettings) {
    self.init(on: RedisNode(settings.loaded), RedisNode(settings))
  }

  /// The store of a node, and the same data as another node has it.
  init(on node: RedisNode) { self.init(on: node, node.sibling()) }

  private init(on node: RedisNode, _ sibling: RedisNode) {
    self.init(
      store: node.store, other: sibling.store, facts: node.store.store.facts,
      otherFacts: sibling.store.store.facts
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

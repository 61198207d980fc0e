import Idempotency
import SimRedis
import Store
import TestSupport
import Wire

extension StoreUnderTest {
  /// A store on a simulated server of each version, and of each topology.
  static let simulated =
    SimRedisVersion.allCases.map { version in
      StoreUnderTest("simulated Redis \(version.rawValue)") {
        let host = try await SharedHosts.alone(version)
        return Opened(.at(host.addresses))
      }
    } + [
      StoreUnderTest("simulated Redis with a replica") {
        var settings = RedisEndpointSettings.at(try await SharedHosts.replicated.addresses)
        settings.demand = ReplicaDemand(replicas: 1)
        return Opened(settings)
      },
      StoreUnderTest("simulated Redis by Sentinel") {
        let addresses = try await SharedHosts.sentinel.addresses
        return Opened(.orders(by: [addresses[2].port]))
      },
      StoreUnderTest("simulated Redis Cluster") {
        Opened(.on(try await SharedHosts.cluster.addresses.map(\.port)))
      },
    ]

  /// A store on a simulated server of the test's own, of each version, whose clock it sets.
  static let simulatedWithOwnClock = SimRedisVersion.allCases.map { version in
    StoreUnderTest("simulated Redis \(version.rawValue) with a clock of its own") {
      let host = try await SharedHosts.ofOneTest(version)
      var opened = Opened(.at(host.addresses))
      opened.setClock = { try await host.setClocks(ahead: $0) }
      return opened
    }
  }
}

extension RedisEndpointSettings {
  /// The settings of a store on the first of these servers.
  fileprivate static func at(_ addresses: [SimAddress]) -> RedisEndpointSettings {
    var settings = RedisEndpointSettings(address: .tcp(host: "127.0.0.1", port: addresses[0].port))
    settings.timeout = .seconds(10)
    settings.inspectionInterval = .seconds(3600)
    settings.namespace = ownNamespace()
    return settings
  }
}

/// The simulated servers of all tests.
private enum SharedHosts {
  private static let alone = Dictionary(
    uniqueKeysWithValues: SimRedisVersion.allCases.map { version in
      (
        version,
        Task {
          try await SimRedisHost(1) { addresses in
            .init(servers: [SimRedisHost.server(addresses[0]) { $0.version = version }])
          }
        }
      )
    })

  static func alone(_ version: SimRedisVersion) async throws -> SimRedisHost {
    guard let started = alone[version] else { preconditionFailure("SharedHosts: an unknown version") }
    return try await started.value
  }

  /// Those whose clock one test sets. They stay, since connections may outlast the test.
  private static let ofTests = Watched<[SimRedisHost]>([])

  static func ofOneTest(_ version: SimRedisVersion) async throws -> SimRedisHost {
    let host = try await SimRedisHost(1) { addresses in
      .init(servers: [SimRedisHost.server(addresses[0]) { $0.version = version }])
    }
    ofTests.withValue { $0.append(host) }
    return host
  }

  private static let startedPair = Task {
    try await SimRedisHost(2) { addresses in
      let servers = addresses.map { SimRedisHost.server($0) { $0.version = .valkey9 } }
      return .init(servers: servers, links: [SimReplicationLink(from: servers[1], to: servers[0])])
    }
  }

  static var replicated: SimRedisHost { get async throws { try await startedPair.value } }

  private static let startedSentinel = Task {
    try await SimRedisHost(3) { addresses in
      let servers = addresses.map { SimRedisHost.server($0) }
      let link = SimReplicationLink(from: servers[1], to: servers[0])
      _ = SimSentinels(name: "orders", sentinels: [servers[2]], members: Array(servers[0...1]))
      return .init(servers: servers, links: [link])
    }
  }

  static var sentinel: SimRedisHost { get async throws { try await startedSentinel.value } }

  private static let startedCluster = Task {
    try await SimRedisHost(3) { addresses in
      let servers = addresses.map { SimRedisHost.server($0) }
      return .init(servers: servers, cluster: SimCluster(servers, masterCount: 3))
    }
  }

  static var cluster: SimRedisHost { get async throws { try await startedCluster.value } }
}

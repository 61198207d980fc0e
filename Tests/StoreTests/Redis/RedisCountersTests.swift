import Idempotency
import Store
import TestSupport
import Testing

/// The figures of a cluster's servers.
@Suite(.timeLimit(.minutes(2)))
struct RedisCountersTests {
  @Test func `a server that serves no slots has no figures`() async throws {
    let cluster = try await RedisCluster(replicas: 1)
    // The slot map comes from a replica, which serves none of them.
    try await RedisNode.run(.on([cluster.replicas[0][0].port])) { node in
      _ = try await node.store.granted(Samples.request())
      let masters = cluster.masters.map { "127.0.0.1:\($0.port)" }
      try await until("the figures are those of the masters") {
        node.store.store.counters.nodes.map(\.name).sorted() == masters.sorted()
      }
    }
  }
}

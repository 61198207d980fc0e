import TestSupport
import Testing

/// Large responses over a thin line to Redis.
struct LargeResponseTests {
  @Test func `a response that takes longer than store.timeout is recorded, and delays nobody`() async throws {
    let redis = try await RedisServer()
    let relay = try await SlowRelay(to: redis.port, bytesPerSecond: 2 << 20)
    let configuration = Configuration(
      store: .redis,
      storeMembers: [
        "url": "'redis://127.0.0.1:\(relay.port)/0'", "timeout": "1s", "local_cache": "0B",
        "compression": "off",
      ], route: ["max_response_body": "8MiB", "on_unknown": "retry"])
    try await Rig.run(configuration) { rig in
      let size = 6 << 20
      rig.backend.on("/v1/large") { _ in Reply(201, [], content: .filler(size)) }
      async let first = rig.order("large", path: "/v1/large")
      try await rig.backend.arrived(1)
      for number in 0..<20 { expectExecuted(try await rig.order("k\(number)")) }
      let executed = try await first
      expectExecuted(executed)
      #expect(executed.body.count == size)
      let replay = try await rig.order("large", path: "/v1/large")
      expectReplayed(replay, of: executed)
      #expect(try await rig.semel.counter("semel_store_reconnects_total") == 0)
      #expect(rig.backend.runs(of: "large") == 1)
    }
    withExtendedLifetime((redis, relay)) {}
  }
}

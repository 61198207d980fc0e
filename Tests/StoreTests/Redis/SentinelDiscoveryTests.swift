import Testing
import Wire

@testable import Store

/// The search for the master, without a network.
struct SentinelDiscoveryTests {
  private let sentinels: [ServerAddress] = [1, 2, 3].map { .tcp(host: "s", port: $0) }
  private let a = ServerAddress.tcp(host: "a", port: 7)
  private let b = ServerAddress.tcp(host: "b", port: 8)

  private func named(_ host: String, _ port: Int) -> RedisValue { .array([.text(host), .text("\(port)")]) }

  private func search() -> SentinelDiscovery { SentinelDiscovery(sentinels: sentinels, name: "orders") }

  @Test func `the next Sentinel is queried after one that fails or knows nothing`() {
    var search = search()
    #expect(search.sentinel == sentinels[0])
    #expect(search.failed("connection refused") == .query(sentinels[1]))
    #expect(search.received(.null) == .query(sentinels[2]))
    search.queried()
    #expect(search.received(named("a", 7)) == .use(a))
    #expect(search.sentinel == sentinels[2])
    search.queried()
    #expect(search.received(named("a", 7)) == .wait)
    search.queried()
    #expect(search.received(named("b", 8)) == .use(b))
  }

  @Test func `after a failed round each Sentinel's failure is reported`() {
    var search = search()
    _ = search.failed("connection refused")
    _ = search.received(.null)
    guard case .pause(let reason) = search.received(.error("NOAUTH Authentication required.")) else {
      Issue.record("no pause")
      return
    }
    #expect(reason.contains("Sentinel at s:1 fails: connection refused"))
    #expect(
      reason.contains("Sentinel at s:2 knows no master of the name orders: correct the store's master_name"))
    #expect(reason.contains("Sentinel at s:3 refuses the question: Redis wants a login"))
    #expect(search.sentinel == sentinels[0])
    #expect(search.failed("again") == .query(sentinels[1]))
  }

  @Test func `a master that turns out to be none is looked up at the next Sentinel`() {
    var search = search()
    #expect(search.received(named("a", 7)) == .use(a))
    #expect(search.refuted(b, "old news") == .wait)
    #expect(search.refuted(a, "it is no master but a slave") == .query(sentinels[1]))
    // Every event loop reports it.
    #expect(search.refuted(a, "it is no master but a slave") == .wait)
    search.queried()
    #expect(search.received(named("b", 8)) == .use(b))
    search.confirmed()
    #expect(search.refuted(b, "connection refused") == .query(sentinels[2]))
    #expect(search.received(named("b", 8)) == .wait)
    #expect(search.refuted(b, "connection refused") == .query(sentinels[0]))
    #expect(search.received(named("b", 8)) == .wait)
    guard case .pause(let reason) = search.refuted(b, "connection refused") else {
      Issue.record("no pause")
      return
    }
    #expect(reason.contains("names b:8, which cannot be used: connection refused"))
  }

  @Test func `a reply that may be older than a push leads nobody back`() {
    var search = search()
    #expect(search.received(named("a", 7)) == .use(a))
    search.queried()
    #expect(search.switched("orders a 7 b 8") == .use(b))
    #expect(search.received(named("a", 7)) == .wait)
    #expect(search.master == b)
    search.queried()
    #expect(search.received(named("a", 7)) == .use(a))
  }

  @Test func `a push names the new master, and others are ignored`() {
    var search = search()
    _ = search.received(named("a", 7))
    #expect(search.switched("others a 7 b 8") == .wait)
    #expect(search.switched("orders a 7 b") == .wait)
    #expect(search.switched("orders a 7 b 8") == .use(b))
    #expect(search.switched("orders a 7 b 8") == .wait)
  }

  @Test(arguments: [
    RedisValue.array([]), .array([.text("h"), .text("0")]), .array([.text(""), .text("1")]), .integer(1),
    .text("x"),
  ])
  func `a reply that is not an address is skipped`(_ reply: RedisValue) {
    var search = search()
    #expect(search.received(reply) == .query(sentinels[1]))
  }
}

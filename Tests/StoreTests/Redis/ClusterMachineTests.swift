import Idempotency
import Testing
import Wire

@testable import Store

/// The decisions of a cluster's client, without a network.
struct ClusterMachineTests {
  private let a = ServerAddress.tcp(host: "a", port: 1)
  private let b = ServerAddress.tcp(host: "b", port: 2)

  private func range(_ first: Int64, _ last: Int64, _ host: RedisValue, _ port: Int64) -> RedisValue {
    .array([
      .integer(first), .integer(last), .array([host, .integer(port), .text("id"), .array([])]),
      .array([.text("replica"), .integer(9)]),
    ])
  }

  /// The values that `CLUSTER KEYSLOT` of a real server returns.
  @Test(arguments: [
    ("foo", 12182), ("semel:facts", 4749), ("semel:{foo}", 12182), ("semel:{foo}:r", 12182),
    ("x{}foo", 11714),
    ("123456789", 12739),
  ])
  func `a key has the slot that Redis computes`(_ key: String, _ slot: Int) {
    #expect(SlotMap.slot(of: key) == slot)
  }

  @Test func `a record has the slot of its keys`() {
    for _ in 0..<20 {
      let id = Samples.id()
      #expect(SlotMap.slot(of: id) == SlotMap.slot(of: "semel:{\(id.text)}:r"))
    }
  }

  @Test func `a map is read, with the replying node where a host is not known`() throws {
    let reply = RedisValue.array([range(101, 16383, .null, 2), range(0, 99, .text("a"), 1)])
    let map = try #require(SlotMap(reply, from: .tcp(host: "b", port: 7)))
    #expect(map.masters == [a, b])
    #expect(map[0] == a && map[99] == a && map[100] == nil && map[101] == b && map[16383] == b)
    #expect(map.uncoveredCount == 1)
    #expect(map.firstSlots.map { $0.slot } == [0, 101])
  }

  @Test(arguments: [
    RedisValue.null, .error("ERR This instance has cluster support disabled"), .array([.integer(1)]),
    .array([.array([.integer(0), .integer(16384), .array([.text("a"), .integer(1)])])]),
    .array([.array([.integer(5), .integer(4), .array([.text("a"), .integer(1)])])]),
  ])
  func `a reply that is not a map is refused`(_ reply: RedisValue) {
    #expect(SlotMap(reply, from: a) == nil)
  }

  @Test func `a moved slot leaves the others where they are`() {
    var map = SlotMap()
    map.assign(5, to: a)
    map.assign(6, to: a)
    map.assign(5, to: b)
    #expect(map[5] == b && map[6] == a && map[7] == nil)
    #expect(map.uncoveredCount == SlotMap.slotCount - 2)
  }

  @Test func `masters beyond the number of slots change nothing`() throws {
    var map = SlotMap()
    for number in 0..<70_000 { map.assign(number % 2, to: .tcp(host: "\(number)", port: 1)) }
    #expect(map.masters.count == SlotMap.slotCount && map.uncoveredCount == SlotMap.slotCount - 2)
    #expect(map[0] == .tcp(host: "16382", port: 1) && map[1] == .tcp(host: "16383", port: 1))
    // One that is known still takes slots.
    map.assign(0, to: .tcp(host: "7", port: 1))
    #expect(map[0] == .tcp(host: "7", port: 1))
  }

  @Test func `refusals are parsed`() {
    #expect(
      ClusterRefusal("MOVED 3999 10.0.0.1:6381", from: a)
        == .moved(slot: 3999, to: .tcp(host: "10.0.0.1", port: 6381)))
    #expect(ClusterRefusal("MOVED 1 ::1:6381", from: a) == .moved(slot: 1, to: .tcp(host: "::1", port: 6381)))
    #expect(ClusterRefusal("ASK 1 :6381", from: a) == .ask(to: .tcp(host: "a", port: 6381)))
    #expect(ClusterRefusal("ASK 1 ?:6381", from: a) == .ask(to: .tcp(host: "a", port: 6381)))
    #expect(ClusterRefusal("TRYAGAIN Multiple keys request during rehashing of slot", from: a) == .tryAgain)
    #expect(ClusterRefusal("LOADING Redis is loading the dataset in memory", from: a) == .loading)
    #expect(ClusterRefusal("CLUSTERDOWN Hash slot not served", from: a)?.kind == .down)
    for text in [
      "MOVED 16384 a:1", "MOVED 1 a", "MOVED 1 a:0", "MOVED", "ASK 1 a:x", "NOSCRIPT No", "ERR MOVED 1 a:1",
    ] {
      #expect(ClusterRefusal(text, from: a) == nil)
    }
  }

  @Test func `ASK is followed once, MOVED by the map, and a cycle ends`() {
    var redirects = ClusterRedirects()
    #expect(redirects.takeNext() == .byMap)
    redirects.refused(.ask(to: b))
    #expect(redirects.takeNext() == .asking(b))
    #expect(redirects.takeNext() == .byMap)
    for _ in 2..<8 {
      redirects.refused(.moved(slot: 1, to: a))
      #expect(redirects.takeNext() == .byMap)
    }
    redirects.refused(.moved(slot: 1, to: b))
    guard case .fail(let reason) = redirects.takeNext() else {
      Issue.record("the circle goes on")
      return
    }
    #expect(reason.contains("point to each other"))
  }

  @Test func `temporary refusals are retried after growing pauses`() {
    var redirects = ClusterRedirects()
    var pauses: [Int64] = []
    for refusal in [
      ClusterRefusal.tryAgain, .loading, .down("CLUSTERDOWN"), .tryAgain, .tryAgain, .tryAgain, .tryAgain,
    ] {
      redirects.refused(refusal)
      if case .later(let pause) = redirects.takeNext() { pauses.append(pause.count) }
    }
    #expect(pauses == [5, 10, 20, 40, 80, 100, 100])
    #expect(redirects.reason?.contains("on its way") == true)
  }

  @Test func `the runs and the digest of a map follow its slots`() {
    var map = SlotMap()
    for slot in 3..<9 { map.assign(slot, to: slot < 6 ? a : b) }
    let runs = [0, 3, 5, 6, 8, 9, SlotMap.slotCount].map { map.run(from: $0) }
    #expect(runs.map { $0?.slots } == [3...5, 3...5, 5...5, 6...8, 8...8, nil, nil])
    #expect(runs.map { $0?.master } == [a, a, a, b, b, nil, nil])
    let before = map.digest
    #expect(before.utf8.count == SlotMap.digestLength)
    // Another order in which the masters were named.
    var same = SlotMap()
    for slot in (3..<9).reversed() { same.assign(slot, to: slot < 6 ? a : b) }
    #expect(same.digest == before)
    map.assign(5, to: b)
    #expect(map.digest != before)
    map.assign(5, to: a)
    #expect(map.digest == before)
    map.assign(16383, to: a)
    #expect(map.run(from: 9)?.slots == 16383...16383)
    #expect(map.digest != before)
  }
}

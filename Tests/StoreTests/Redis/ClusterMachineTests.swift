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

  @Test func `a walk visits every master, and begins again at one that has taken over`() throws {
    var map = SlotMap()
    for slot in 0..<100 { map.assign(slot, to: slot < 50 ? b : a) }
    let first = try #require(ClusterWalk.step(nil, in: map))
    #expect(first.master == b && first.cursor == "0")
    let middle = try #require(ClusterWalk.after(b, cursor: "17", in: map))
    #expect(middle.text == "0/b:2/17")
    #expect(ClusterWalk(middle.text) == middle)
    let inside = try #require(ClusterWalk.step(middle, in: map))
    #expect(inside.master == b && inside.cursor == "17")
    let second = try #require(ClusterWalk.after(b, cursor: "0", in: map))
    let next = try #require(ClusterWalk.step(second, in: map))
    #expect(next.master == a && next.cursor == "0")
    #expect(ClusterWalk.after(a, cursor: "0", in: map) == nil)
    var other = SlotMap()
    for slot in 0..<100 { other.assign(slot, to: .tcp(host: "c", port: 3)) }
    let again = try #require(ClusterWalk.step(middle, in: other))
    #expect(again.master == .tcp(host: "c", port: 3) && again.cursor == "0")
    for text in ["", "0", "0/a:1", "0//1", "x/a:1/1", "16384/a:1/1", "0/a:1/", "0/a:1/-1", "0/a:1/1/2"] {
      #expect(ClusterWalk(text) == nil)
    }
  }
}

import SimRedis
import TestSupport
import Testing

/// The nodes of a cluster, and Sentinels.
struct SimClusterTests {
  private let nodes = (1...4).map { SimRedisServer.test(port: $0) }

  /// Three masters, and a replica of the first one.
  private func cluster() -> (SimCluster, SimReplicationLink) {
    let cluster = SimCluster(nodes, masterCount: 3)
    let link = cluster.follow(3, 0)
    link.connect(at: 0)
    link.deliver()
    return (cluster, link)
  }

  /// A tag whose slot is the first node's, and the slot.
  private var first: (key: String, slot: Int) {
    var number = 0
    while SimSlots.slot(of: Bytes("{\(number)}".utf8)) >= 5000 { number += 1 }
    return ("{\(number)}", SimSlots.slot(of: Bytes("{\(number)}".utf8)))
  }

  @Test func `keys have the slots that Redis gives them`() {
    #expect(SimSlots.slot(of: Bytes("123456789".utf8)) == 12739)
    #expect(SimSlots.slot(of: Bytes("foo{bar}zap".utf8)) == SimSlots.slot(of: Bytes("bar".utf8)))
    #expect(SimSlots.slot(of: Bytes("foo{}".utf8)) != SimSlots.slot(of: Bytes("".utf8)))
  }

  @Test func `a node names the master of a slot that is not its own`() throws {
    _ = cluster()
    let peer = try SimPeer(nodes[1])
    #expect(peer.call("GET", first.key) == .error("MOVED \(first.slot) 127.0.0.1:1"))
    #expect(
      peer.call("DEL", first.key, "other")
        == .error("CROSSSLOT Keys in request don't hash to the same slot"))
    guard case .array(let runs)? = peer.call("CLUSTER", "SLOTS") else { throw TestFailure("no slots") }
    #expect(runs.count == 3)
    guard case .array(let run) = runs[0] else { throw TestFailure("no run") }
    #expect(run.count == 4, "two ends, the master and its replica")
  }

  @Test func `a slot that moves asks for the target where a key has gone`() throws {
    let (cluster, _) = cluster()
    let (source, target) = (try SimPeer(nodes[0]), try SimPeer(nodes[1]))
    source.call("SET", first.key, "v")
    cluster.beginMigration(of: first.slot, from: 0, to: 1)
    #expect(source.call("GET", first.key) == .text("v"))
    #expect(source.call("GET", first.key + "x") == .error("ASK \(first.slot) 127.0.0.1:2"))
    #expect(cluster.moveKeys(of: first.slot, from: 0, to: 1, at: 0) == 0)
    #expect(source.call("GET", first.key) == .error("ASK \(first.slot) 127.0.0.1:2"))
    #expect(target.call("GET", first.key) == .error("MOVED \(first.slot) 127.0.0.1:1"))
    target.call("ASKING")
    #expect(target.call("GET", first.key) == .text("v"))
    #expect(target.call("GET", first.key)?.isError == true, "it is asked for one command")
    cluster.endMigration(of: first.slot, from: 0, to: 1)
    #expect(target.call("GET", first.key) == .text("v"))
    #expect(source.call("GET", first.key) == .error("MOVED \(first.slot) 127.0.0.1:2"))
    let third = try SimPeer(nodes[2])
    #expect(third.call("GET", first.key) == .error("MOVED \(first.slot) 127.0.0.1:1"))
    cluster.gossip()
    #expect(third.call("GET", first.key) == .error("MOVED \(first.slot) 127.0.0.1:2"))
  }

  @Test func `a replica that was voted for serves its master's slots`() throws {
    let (cluster, link) = cluster()
    let former = try SimPeer(nodes[0])
    former.call("SET", first.key, "v")
    link.deliver()
    former.call("SET", first.key, "lost")
    nodes[0].kill(.process)
    cluster.mark(0, isFailed: true)
    #expect(try SimPeer(nodes[1]).call("GET", first.key) == .error("CLUSTERDOWN The cluster is down"))
    cluster.failOver(to: 3)
    cluster.gossip()
    #expect(try SimPeer(nodes[1]).call("GET", first.key) == .error("MOVED \(first.slot) 127.0.0.1:4"))
    #expect(try SimPeer(nodes[3]).call("GET", first.key) == .text("v"))
    nodes[0].restart(at: 0)
    cluster.mark(0, isFailed: false)
    #expect(cluster.yield(0, to: 3) == nil, "it has not heard of its successor")
    cluster.gossip(from: 3, to: 0)
    let back = try #require(cluster.yield(0, to: 3))
    back.connect(at: 0)
    back.deliver()
    #expect(nodes[0].text(first.key) == "v")
  }

  @Test func `messages reach the subscribers at all nodes`() throws {
    let (cluster, _) = cluster()
    let subscriber = try SimPeer(nodes[2])
    subscriber.call("SUBSCRIBE", "c")
    try SimPeer(nodes[0]).call("PUBLISH", "c", "m")
    cluster.passMessages()
    #expect(subscriber.received() == [.array([.text("message"), .text("c"), .text("m")])])
  }

  @Test func `a node that has lost the others serves nothing`() throws {
    _ = cluster()
    nodes[0].slots?.isMinority = true
    #expect(try SimPeer(nodes[0]).call("GET", first.key) == .error("CLUSTERDOWN The cluster is down"))
  }

  @Test func `Sentinels promote the replica that has the most, and say so`() throws {
    let master = nodes[0]
    let links = nodes[1...2].map { SimReplicationLink(from: $0, to: master) }
    for link in links {
      link.connect(at: 0)
      link.deliver()
    }
    let sentinel = SimRedisServer.test(port: 9)
    let group = SimSentinels(name: "orders", sentinels: [sentinel], members: Array(nodes[0...2]))
    let (asker, subscriber, client) = (try SimPeer(sentinel), try SimPeer(sentinel), try SimPeer(nodes[2]))
    subscriber.call("SUBSCRIBE", "+switch-master")
    try SimPeer(master).call("SET", "k", "v")
    links[1].deliver()
    #expect(
      asker.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "orders") == .array([.text("127.0.0.1"), .text("1")]))
    #expect(asker.call("SENTINEL", "get-master-addr-by-name", "x") == .nullArray)
    #expect(asker.call("GET", "k")?.isError == true)
    #expect(group.failOver() === nodes[2])
    #expect(
      subscriber.received() == [
        .array([.text("message"), .text("+switch-master"), .text("orders 127.0.0.1 1 127.0.0.1 3")])
      ])
    _ = client.received()
    #expect(client.isClosed)
    #expect(nodes[2].isMaster && master.isMaster, "the former master has not heard of it")
    let back = try #require(group.reconfigure(master))
    back.connect(at: 0)
    back.deliver()
    #expect(!master.isMaster && master.text("k") == "v")
    #expect(try SimPeer(master).call("ROLE") != nil)
  }
}

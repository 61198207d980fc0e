import SimRedis
import TestSupport
import Testing

/// Replicas, waits and promotions.
struct SimRedisReplicationTests {
  private let master = SimRedisServer.test(port: 1)
  private let replica = SimRedisServer.test(port: 2)

  /// A replica that follows the master.
  private func connected() -> SimReplicationLink {
    let link = SimReplicationLink(from: replica, to: master)
    link.connect(at: 0)
    link.deliver()
    link.confirm(at: 0)
    return link
  }

  @Test func `a change reaches the replica when the link delivers it`() throws {
    let link = connected()
    try SimPeer(master).call("SET", "k", "v")
    #expect(replica.text("k") == nil)
    #expect(link.pendingCount == 1)
    #expect(link.deliver() == 1)
    #expect(replica.text("k") == "v")
  }

  @Test func `a script's changes reach the replica together`() throws {
    let link = connected()
    let script = "redis.call('SET', 'a', '1') redis.call('SET', 'b', '1')"
    try SimPeer(master).call("EVAL", script, "0")
    #expect(link.deliver(limit: 1) == 1)
    #expect(replica.text("a") == "1" && replica.text("b") == "1")
  }

  @Test func `a sorted set reaches the replica, and ends with its last member`() throws {
    let link = connected()
    let peer = try SimPeer(master)
    peer.call("ZADD", "z", "2", "b", "1", "c", "1", "a")
    peer.call("ZREM", "z", "c", "d")
    peer.call("ZADD", "z", "3", "a")
    link.deliver()
    let key = Bytes("z".utf8)
    #expect(replica.entry(key, at: 0) == master.entry(key, at: 0))
    #expect(
      peer.call("ZRANGEBYSCORE", "z", "-inf", "+inf", "WITHSCORES")
        == .array([.text("b"), .text("2"), .text("a"), .text("3")]))
    peer.call("ZREM", "z", "a", "b")
    link.deliver()
    #expect(replica.entry(key, at: 0) == nil && master.entry(key, at: 0) == nil)
  }

  @Test func `a cut link loses nothing, and goes on where it was`() throws {
    let link = connected()
    let peer = try SimPeer(master)
    peer.call("SET", "a", "1")
    link.cut()
    peer.call("SET", "b", "1")
    #expect(link.deliver() == 0)
    link.connect(at: 0)
    #expect(link.isUp, "no copy of all data is needed")
    #expect(link.deliver() == 2)
    #expect(replica.text("a") == "1" && replica.text("b") == "1")
  }

  @Test func `a replica that is too far behind begins with a copy`() throws {
    let master = SimRedisServer.test(port: 3) { $0.backlogSize = 1000 }
    let link = SimReplicationLink(from: replica, to: master)
    link.connect(at: 0)
    link.deliver()
    link.cut()
    let peer = try SimPeer(master)
    for index in 0..<100 { peer.call("SET", "k\(index)", "v") }
    link.connect(at: 0)
    #expect(!link.isUp)
    link.deliver()
    #expect(link.isUp && replica.text("k99") == "v")
  }

  @Test func `a wait ends with the confirmation that completes it`() throws {
    let link = connected()
    let peer = try SimPeer(master)
    peer.call("SET", "k", "v")
    #expect(peer.send(["WAIT", "1", "1000"]).isEmpty)
    #expect(peer.send(["PING"]).isEmpty, "what follows waits, too")
    link.deliver()
    #expect(peer.received().isEmpty)
    link.confirm(at: 0)
    #expect(peer.received() == [.integer(1), .status("PONG")])
  }

  @Test func `a wait ends with its time`() throws {
    _ = connected()
    let peer = try SimPeer(master)
    peer.call("SET", "k", "v")
    peer.call("WAIT", "1", "1000")
    #expect(master.nextEvent(after: 0).map { $0 >= after(1000) } == true)
    master.advance(to: after(999))
    #expect(peer.received().isEmpty)
    master.advance(to: after(1000))
    #expect(peer.received() == [.integer(0)])
  }

  @Test func `a wait covers the connection's own last write alone from Redis 7_2 on`() throws {
    let newer = SimRedisServer.test(port: 4) { $0.version = .valkey9 }
    for (server, isMet) in [(newer, true), (master, false)] {
      let link = SimReplicationLink(from: .test(port: 5), to: server)
      link.connect(at: 0)
      link.deliver()
      link.confirm(at: 0)
      let (own, other) = (try SimPeer(server), try SimPeer(server))
      other.call("SET", "k", "v")
      own.call("GET", "k")
      #expect(own.send(["WAIT", "1", "1000"]) == (isMet ? [.integer(1)] : []))
    }
  }

  @Test func `a promoted replica lacks what was not delivered, and tells whose history it has followed`()
    throws
  {
    let link = connected()
    let peer = try SimPeer(master)
    peer.call("SET", "a", "1")
    link.deliver()
    peer.call("SET", "b", "1")
    replica.promote()
    #expect(replica.text("a") == "1" && replica.text("b") == nil)
    let info = try SimPeer(replica).call("INFO", "replication")
    guard case .bulk(let text) = info else { throw TestFailure("\(info as Any)") }
    let lines = String(decoding: text, as: UTF8.self)
    #expect(lines.contains("role:master\r\n"))
    #expect(lines.contains("master_replid2:\(master.historyID)\r\n"))
    #expect(replica.historyID != master.historyID)
  }

  @Test func `a former master that wrote on loses its writes when it follows`() throws {
    let link = connected()
    let peer = try SimPeer(master)
    peer.call("SET", "a", "1")
    link.deliver()
    replica.promote()
    peer.call("SET", "b", "1")
    try SimPeer(replica).call("SET", "c", "1")
    let back = SimReplicationLink(from: master, to: replica)
    back.connect(at: 0)
    #expect(!back.isUp, "the histories differ, so that all data are copied")
    back.deliver()
    #expect(master.text("b") == nil && master.text("c") == "1")
    #expect(
      try SimPeer(master).call("SET", "k", "v")
        == .error("READONLY You can't write against a read only replica."))
  }

  @Test func `a former master that wrote nothing more goes on without a copy`() throws {
    let link = connected()
    try SimPeer(master).call("SET", "a", "1")
    link.deliver()
    replica.promote()
    let back = SimReplicationLink(from: master, to: replica)
    back.connect(at: 0)
    #expect(back.isUp)
  }

  @Test func `who waits at a master that becomes a replica is disconnected`() throws {
    _ = connected()
    let peer = try SimPeer(master)
    peer.call("SET", "k", "v")
    peer.call("WAIT", "1", "1000")
    replica.promote()
    _ = SimReplicationLink(from: master, to: replica)
    let replies = peer.received()
    #expect(replies.first?.isError == true && peer.isClosed)
  }

  @Test func `expiry at a replica is by its own clock, and removal by its master`() throws {
    let link = connected()
    replica.clock.step(by: 2_000_000)
    try SimPeer(master).call("SET", "k", "v", "PX", "1000")
    link.deliver()
    #expect(replica.text("k") == nil)
    #expect(master.text("k") == "v")
    replica.clock.step(by: -2_000_000)
    #expect(replica.text("k") == "v", "it was not removed")
  }

  @Test func `messages reach the subscribers at replicas`() throws {
    let link = connected()
    let subscriber = try SimPeer(replica)
    subscriber.call("SUBSCRIBE", "c")
    #expect(try SimPeer(master).call("PUBLISH", "c", "m") == .integer(0))
    link.deliver()
    #expect(subscriber.received() == [.array([.text("message"), .text("c"), .text("m")])])
  }

  @Test func `changes need as many replicas as the settings demand`() throws {
    master.minReplicas = 1
    let peer = try SimPeer(master)
    #expect(peer.call("SET", "k", "v") == .error("NOREPLICAS Not enough good replicas to write."))
    _ = connected()
    #expect(peer.call("SET", "k", "v") == .ok)
    #expect(peer.call("SET", "k", "v", at: after(11_000))?.isError == true, "the replica is silent")
  }

  @Test func `a replica without its master serves nothing if it may serve nothing stale`() throws {
    let replica = SimRedisServer.test(port: 6) { $0.servesStaleData = false }
    let link = SimReplicationLink(from: replica, to: master)
    let refusal = RESPReply.error(
      "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")
    #expect(try SimPeer(replica).call("GET", "k") == refusal)
    link.connect(at: 0)
    link.deliver()
    #expect(try SimPeer(replica).call("GET", "k") == .null)
  }
}

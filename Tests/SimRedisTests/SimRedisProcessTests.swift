import SimRedis
import TestSupport
import Testing

/// Ends, freezes, disks, memory and clocks of a server.
struct SimRedisProcessTests {
  @Test(
    arguments: [
      (nil, .process, nil), (.always, .process, "v"), (.always, .power, "v"), (.everysec, .process, "v"),
      (.everysec, .power, nil), (.no, .power, nil),
    ] as [(SimRedisSettings.Fsync?, SimRedisServer.Loss, String?)])
  func `a restart brings back what the disk has`(
    _ fsync: SimRedisSettings.Fsync?, _ loss: SimRedisServer.Loss, _ expected: String?
  ) throws {
    let server = SimRedisServer.test { $0.appendOnly = fsync }
    let peer = try SimPeer(server)
    peer.call("SET", "k", "v")
    server.kill(loss)
    _ = peer.received()
    #expect(peer.isClosed)
    #expect(server.open() == nil)
    server.restart(at: 0)
    #expect(server.text("k") == expected)
  }

  @Test func `a file that is synced each second loses the last second`() throws {
    let server = SimRedisServer.test { $0.appendOnly = .everysec }
    let peer = try SimPeer(server)
    peer.call("SET", "a", "1", at: after(500))
    let next = try #require(server.nextEvent(after: after(500)))
    #expect(next == after(1000))
    server.advance(to: next)
    peer.call("SET", "b", "1", at: after(1100))
    server.kill(.power)
    server.restart(at: after(1200))
    #expect(server.text("a") == "1" && server.text("b") == nil)
  }

  @Test func `a wait for the disk ends with the sync`() throws {
    let server = SimRedisServer.test {
      $0.version = .valkey9
      $0.appendOnly = .everysec
    }
    let peer = try SimPeer(server)
    peer.call("SET", "k", "v", at: after(100))
    #expect(peer.send(["WAITAOF", "1", "0", "5000"], at: after(100)).isEmpty)
    server.advance(to: after(1000))
    #expect(peer.received() == [.array([.integer(1), .integer(0)])])
  }

  @Test func `another run has another name, history and no scripts`() throws {
    let server = SimRedisServer.test { $0.appendOnly = .always }
    let (run, history) = (server.run, server.historyID)
    let digest = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
    #expect(try SimPeer(server).call("SCRIPT", "LOAD", "return 1") == .text(digest))
    server.kill(.process)
    server.restart(at: 0)
    #expect(server.run != run && server.historyID != history)
    let reply = try SimPeer(server).call("EVALSHA", digest, "0")
    #expect(reply == .error("NOSCRIPT No matching script. Please use EVAL."))
  }

  @Test func `a server that reads its data replies to little`() throws {
    let server = SimRedisServer.test { $0.appendOnly = .always }
    server.kill(.process)
    server.restart(at: 0, isLoading: true)
    let peer = try SimPeer(server)
    #expect(peer.call("GET", "k") == .error("LOADING Redis is loading the dataset in memory"))
    #expect(peer.call("TIME")?.isError == false)
    server.finishLoading()
    #expect(peer.call("GET", "k") == .null)
  }

  @Test func `a frozen server executes later what has come meanwhile`() throws {
    let server = SimRedisServer.test()
    let peer = try SimPeer(server)
    server.freeze()
    #expect(peer.send(["SET", "k", "v", "PX", "100"]).isEmpty)
    #expect(server.text("k") == nil)
    server.thaw(at: after(1000))
    #expect(peer.received() == [.ok])
    #expect(server.text("k", at: after(1050)) == "v", "the time to live begins with the execution")
  }

  @Test func `a full memory refuses what grows, and in a script before its first write alone`() throws {
    let server = SimRedisServer.test()
    let peer = try SimPeer(server)
    peer.call("SET", "k", "v")
    server.maxMemory = 1
    let refusal = "OOM command not allowed when used memory > 'maxmemory'."
    #expect(peer.call("SET", "k", "w") == .error(refusal))
    #expect(peer.call("GET", "k") == .text("v"))
    let script = "return redis.call('SET', KEYS[1], 'w')"
    guard case .error(let text) = peer.call("EVAL", script, "1", "k") else { throw TestFailure("no error") }
    #expect(text.hasPrefix(refusal + " script: ") && text.hasSuffix(", on @user_script:1."))
    #expect(peer.call("EVAL", "redis.call('DEL', 'x') " + script, "1", "k") == .ok)
  }

  @Test func `a server that evicts counts the keys`() throws {
    let server = SimRedisServer.test { $0.eviction = .all }
    let peer = try SimPeer(server)
    for index in 0..<10 { peer.call("SET", "k\(index)", String(repeating: "v", count: 1000)) }
    server.maxMemory = server.usedMemory - 2000
    #expect(peer.call("SET", "k", "v") == .ok)
    #expect(server.keys(at: 0).count < 10)
    guard case .bulk(let text) = peer.call("INFO", "stats") else { throw TestFailure("no reply") }
    #expect(!String(decoding: text, as: UTF8.self).contains("evicted_keys:0"))
  }

  @Test func `a disk that is full refuses changes and pings`() throws {
    let server = SimRedisServer.test { $0.appendOnly = .always }
    server.diskFault = "No space left on device"
    let peer = try SimPeer(server)
    let refusal = RESPReply.error("MISCONF Errors writing to the AOF file: No space left on device")
    #expect(peer.call("SET", "k", "v") == refusal)
    #expect(peer.call("PING") == refusal)
    #expect(peer.call("GET", "k") == .null)
  }

  @Test func `a clock that is set forwards lets keys expire`() throws {
    let server = SimRedisServer.test()
    let peer = try SimPeer(server)
    peer.call("SET", "k", "v", "PX", "1000")
    #expect(peer.call("TIME") == .array([.text("1000"), .text("0")]))
    server.clock.step(by: 2_000_000)
    #expect(peer.call("GET", "k") == .null)
    #expect(peer.call("TIME") == .array([.text("1002"), .text("0")]))
  }

  @Test func `a clock that drifts gains on the world's time`() {
    var clock = SimRedisClock(microseconds: 0, drift: 1000)
    #expect(clock.milliseconds(at: after(10_000)) == 10_010)
    clock.drift(by: -1000, from: after(10_000))
    #expect(clock.milliseconds(at: after(20_000)) == 20_000)
  }

  @Test func `keys that have expired are removed without being met`() throws {
    let server = SimRedisServer.test()
    try SimPeer(server).call("SET", "k", "v", "PX", "10")
    let used = server.usedMemory
    server.removeExpired(at: after(11))
    #expect(server.usedMemory < used)
  }

  @Test func `equal seeds and events give equal names`() {
    #expect(SimRedisServer.test(seed: 7).run == SimRedisServer.test(seed: 7).run)
    #expect(SimRedisServer.test(seed: 7).run != SimRedisServer.test(seed: 8).run)
  }
}

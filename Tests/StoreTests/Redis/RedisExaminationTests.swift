import Foundation
import Glibc
import Idempotency
import Store
import TestSupport
import Testing
import Wire

/// The findings that an operator gets about a Redis before Semel is started, on real servers.
@Suite(.timeLimit(.minutes(1)))
struct RedisExaminationTests {
  private func texts(_ settings: RedisEndpointSettings, skew: Int64 = 0) async -> [String] {
    let examination = RedisExamination(settings) { Int64(Date().timeIntervalSince1970) + skew }
    return await examination.findings().map { ($0.isError ? "" : "warning: ") + $0.text }
  }

  private func redis(_ arguments: [String] = []) async throws -> (RedisServer, RedisEndpointSettings) {
    let server = try await RedisServer(arguments: arguments, appendOnly: true)
    var settings = RedisEndpointSettings.on(server)
    settings.namespace = "semel"
    return (server, settings)
  }

  @Test func `a correct Redis yields no findings`() async throws {
    let (server, settings) = try await redis()
    #expect(await texts(settings) == [])
    #expect(try server.command(["DBSIZE"]) == ":0")
  }

  @Test func `all faults are found at once`() async throws {
    let (server, settings) = try await redis([
      "--appendonly", "no", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru",
    ])
    var database = settings
    database.database = 99
    let texts = await texts(database, skew: -120)
    #expect(texts.contains { $0.contains("database 99 cannot be used") })
    #expect(texts.contains { $0.hasPrefix("warning: ") && $0.contains("allkeys-lru") })
    #expect(texts.contains { $0.hasPrefix("warning: ") && $0.contains("appendonly is no") })
    #expect(texts.contains { $0.contains("its clock differs from this machine's by 1") })
    var strict = settings
    strict.requireDurable = true
    #expect(await self.texts(strict).contains { !$0.hasPrefix("warning: ") && $0.contains("allkeys-lru") })
    server.kill()
  }

  @Test func `replicas that changes wait for are looked for`() async throws {
    let (server, base) = try await redis()
    var settings = base
    settings.demand = ReplicaDemand(replicas: 1)
    let lonely = await texts(settings)
    #expect(lonely.contains { $0.hasSuffix(": 0 replicas follow it, fewer than store.replicas (1)") })
    #expect(lonely.contains { $0.hasPrefix("warning: ") && $0.contains("set min-replicas-to-write 1") })
    let replica = try await RedisServer(arguments: ["--replicaof", "127.0.0.1", "\(server.port)"])
    try server.command(["CONFIG", "SET", "min-replicas-to-write", "1"])
    try await until("the replica follows") {
      try server.command(["INFO", "replication"])?.contains("state=online") == true
    }
    // It is enough, and one failure more than that is not.
    let enough = await texts(settings)
    #expect(enough.count == 1 && enough.allSatisfy { $0.contains(": just 1 replica for store.replicas (1)") })
    try server.command(["ACL", "SETUSER", "semel", "on", ">word", "~semel:*", "&semel:*", "+@all", "-wait"])
    settings.login.user = "semel"
    settings.login.password = "word"
    #expect(await texts(settings).contains { $0.contains("lacks +wait;") })
    settings.demand = ReplicaDemand(replicas: 0, isOnDisk: true)
    if try !server.knows("waitaof") {
      #expect(await texts(settings).contains { $0.contains("this server has no WAITAOF") })
    }
    replica.stop()
  }

  @Test func `missing rights are named, and the line for a user who has them is enough`() async throws {
    let (server, base) = try await redis([
      "--user", "semel", "on", ">word", "~semel:*", "+@all", "-evalsha", "-scan",
    ])
    var settings = base
    settings.login.user = "semel"
    settings.login.password = "word"
    let text = try #require(await texts(settings).first { $0.contains("lacks") })
    #expect(text.contains("lacks +evalsha +scan &semel:*;"), "\(text)")
    let rules = try advisedRules(in: text)
    try server.command(["ACL", "SETUSER", "semel", "reset"] + rules)
    #expect(await texts(settings) == [])
    try server.command(["ACL", "LOG", "RESET"])
    // Semel itself runs with these rights, too, and its inspections.
    settings.inspectionInterval = 100
    try await RedisNode.run(settings) { node in
      try await Self.useEverything(node)
      let before = try server.calls(of: "hget")
      try await until("Redis was inspected again") { try server.calls(of: "hget") >= before + 2 }
    }
    #expect(try server.command(["ACL", "LOG"]) == "")
  }

  @Test func `the line for a user of a cluster is enough, also while a slot is on its way`() async throws {
    let cluster = try await RedisCluster()
    for master in cluster.masters {
      try master.command(["ACL", "SETUSER", "semel", "on", ">word", "-@all"])
    }
    var settings = RedisEndpointSettings.on(cluster.ports)
    settings.login.user = "semel"
    settings.login.password = "word"
    let text = try #require(await texts(settings).first)
    let rules = try advisedRules(in: text)
    for master in cluster.masters {
      try master.command(["ACL", "SETUSER", "semel", "reset"] + rules)
      try master.command(["ACL", "LOG", "RESET"])
    }
    #expect(!(await texts(settings)).contains { $0.contains("needs is") })
    try await RedisNode.run(settings) { node in
      let claim = try await node.store.completed(Samples.request(SlotNumber.id(in: 0...5460)))
      let (source, target) = (cluster.masters[0], cluster.masters[1])
      try await cluster.migrate(slot: SlotNumber.of(claim.id), from: source, to: target) {
        #expect(try await node.store.claim(Samples.again(claim)).taken == .completed)
        try await Self.useEverything(node)
      }
    }
    for master in cluster.masters { #expect(try master.command(["ACL", "LOG"]) == "") }
  }

  /// The rules of the user that a finding advises.
  private func advisedRules(in text: String) throws -> [String] {
    let line = try #require(text.split(separator: "needs is: user semel ").last)
    return line.replacing("PASSWORD", with: "word").split(separator: " ").map(String.init)
  }

  /// Uses every command of a store.
  private static func useEverything(_ node: RedisNode) async throws {
    let (store, origin) = (node.store, Samples.attribution())
    let large = Samples.completion(.whole(Samples.response(body: String(repeating: "x", count: 100_000))))
    let claim = try await store.completed(Samples.request(attribution: origin), with: large)
    #expect(try await store.find(claim.id).completedRecord?.outcome == large.outcome)
    for end in StoreWatchTests.End.allCases {
      let claim = try await store.granted(Samples.request())
      #expect(try await store.renew(claim) == .done)
      if end == .resolve { #expect(try await store.markUnknown(claim) == .done) }
      try await end.run(claim, on: store)
    }
    #expect(try await store.unreadable().isEmpty)
    let filter = RecordFilter(keyDigests: [try #require(origin.keyDigest)])
    #expect(try await store.found(filter) == [claim.id])
    let (board, turn) = (store.store, OwnerToken.random())
    for _ in 0..<2 { _ = try await board.takeTurn(turn, for: .seconds(60)) }
    try await board.post("count", for: .seconds(60))
    #expect(try await board.lastCount() == "count")
    try await store.watch(claim.id).cancel()
    #expect(try await store.forget(claim.id, fence: .seconds(60)))
  }

  @Test func `a node of a cluster, a replica and a dead server are named`() async throws {
    let cluster = try await SharedCluster.cluster
    let (server, settings) = try await redis()
    let (replica, _) = try await redis(["--replicaof", "127.0.0.1", "\(server.port)"])
    for (port, fault) in [
      (cluster.masters[0].port, "is a node of a cluster"), (replica.port, "is a read-only replica"),
      (FreePort.find(), "cannot be used"),
    ] {
      var other = settings
      other.address = .tcp(host: "127.0.0.1", port: port)
      let texts = await texts(other)
      #expect(texts.contains { !$0.hasPrefix("warning: ") && $0.contains(fault) }, "\(texts)")
    }
  }

  @Test func `each node of a cluster and each Sentinel is examined`() async throws {
    let cluster = try await SharedCluster.cluster
    let dead = FreePort.find()
    let texts = await texts(.on(cluster.ports + [dead]))
    #expect(texts.contains { $0.hasPrefix("warning: 127.0.0.1:\(dead) cannot be used") })
    #expect(texts.filter { $0.contains("appendonly is no") && !$0.contains("replica") }.count == 3)
    let (server, settings) = try await redis()
    let sentinel = try await RedisServer(sentinelOf: "orders", master: server.port)
    let ignorant = try await RedisServer(sentinelOf: "others", master: server.port)
    var led = settings
    let addresses = [sentinel.port, ignorant.port].map {
      ServerAddress.tcp(host: "127.0.0.1", port: $0)
    }
    led.topology = .sentinel(addresses, master: "orders", login: RedisLogin())
    let found = await self.texts(led)
    #expect(found.count == 1 && found[0].contains("knows no master of the name orders"), "\(found)")
  }

  @Test func `Sentinels that name different masters are named`() async throws {
    let (one, settings) = try await redis()
    let (other, _) = try await redis()
    let sentinels = [try SilentSentinel(naming: one), try SilentSentinel(naming: other)]
    var led = settings
    led.topology = .sentinel(
      sentinels.map { ServerAddress.tcp(host: "127.0.0.1", port: $0.port) }, master: "orders",
      login: RedisLogin())
    let found = await texts(led)
    #expect(
      found == [
        "the Sentinels name different masters: 127.0.0.1:\(one.port), 127.0.0.1:\(other.port)"
      ])
  }

  @Test func `what a cluster's replicas lack is told before a failover needs it`() async throws {
    let cluster = try await RedisCluster(replicas: 1)
    let user = ["ACL", "SETUSER", "semel", "on", ">word", "~*", "&*", "+@all"]
    for master in cluster.masters { try master.command(user) }
    let replicas = cluster.replicas.map { $0[0] }
    try replicas[0].command(user)
    try replicas[1].command(user + ["-evalsha"])
    try await until("the masters list their replicas") {
      let slots = try cluster.masters[0].command(["CLUSTER", "SLOTS"])
      return replicas.allSatisfy { slots?.contains("\($0.port)") == true }
    }
    var settings = RedisEndpointSettings.on(cluster.masters.map(\.port))
    settings.login.user = "semel"
    settings.login.password = "word"
    let place = "warning: after a failover: replica 127.0.0.1:"
    let texts = await texts(settings)
    #expect(
      !texts.contains { $0.hasPrefix("\(place)\(replicas[0].port)") && $0.contains("lacks") }, "\(texts)")
    #expect(
      texts.contains { $0.hasPrefix("\(place)\(replicas[1].port): Semel's user lacks +evalsha;") }, "\(texts)"
    )
    #expect(texts.contains { $0.hasPrefix("\(place)\(replicas[2].port) cannot be used") }, "\(texts)")
    #expect(texts.allSatisfy { $0.hasPrefix("warning: ") }, "\(texts)")

    // Each master is tried with a change in a slot of its own.
    for master in cluster.masters {
      try master.command(["CONFIG", "SET", "maxmemory", "1mb"])
      let full = await self.texts(settings).filter { !$0.hasPrefix("warning: ") }
      #expect(full.count == 1 && full[0].hasPrefix("127.0.0.1:\(master.port): "), "\(full)")
      try master.command(["CONFIG", "SET", "maxmemory", "0"])
    }

    for master in cluster.masters { try master.command(["ACL", "SETUSER", "semel", "-@all"]) }
    let refused = await self.texts(settings)
    #expect(refused.count == 3, "\(refused)")
    #expect(
      refused.allSatisfy { $0.contains("; all that Semel's user needs is: user semel on ") }, "\(refused)")
  }

  @Test func `a replica that Sentinel may make the master is examined`() async throws {
    let (server, base) = try await redis()
    let replica = try await RedisServer(arguments: ["--replicaof", "127.0.0.1", "\(server.port)"])
    try await until("the replica follows") {
      try server.command(["INFO", "replication"])?.contains("state=online") == true
    }
    let sentinel = try await RedisServer(sentinelOf: "orders", master: server.port)
    var settings = base
    settings.topology = .sentinel(
      [.tcp(host: "127.0.0.1", port: sentinel.port)], master: "orders", login: RedisLogin())
    let found = await texts(settings)
    let place = "warning: after a failover: replica 127.0.0.1:\(replica.port): "
    #expect(found.count == 1 && found[0].hasPrefix("\(place)appendonly is no"), "\(found)")
  }

  @Test func `the examination of a cluster in use changes nothing there`() async throws {
    let cluster = try await SharedCluster.cluster
    let settings = RedisEndpointSettings.on(cluster.ports)
    try await RedisNode.run(settings) { node in
      let claim = try await node.store.granted(Samples.request())
      func keys() throws -> Set<Substring> {
        Set(
          try cluster.masters.flatMap {
            try $0.command(["KEYS", "*\(settings.namespace)*"])?.split(separator: "\n") ?? []
          })
      }
      // The record, the facts of the namespace, and those of each master, by which its epoch is known.
      for (index, master) in cluster.masters.enumerated() {
        let slot = index * 16384 / cluster.masters.count
        let tag = (0...).first { SlotNumber.of(key: "\($0)") == slot } ?? 0
        try master.command(["HSET", "\(settings.namespace):{\(tag)}:facts", "epoch", "e"])
      }
      let before = try keys()
      #expect(before.count >= 5, "\(before)")
      let examined = RedisExamination(settings) { Int64(Date().timeIntervalSince1970) }
      _ = await examined.findings()
      #expect(try keys() == before)
      #expect(try await node.store.renew(claim) == .done)
    }
  }

  @Test func `a Redis that is slower than the time-out is named`() async throws {
    let slow = try ScriptedRedis { words in
      if words[0] == "INFO" { usleep(120_000) }
      return "+OK\r\n"
    }
    var settings = RedisEndpointSettings(address: .tcp(host: "127.0.0.1", port: slow.port))
    settings.timeout = 100
    settings.namespace = "semel"
    let found = await texts(settings)
    #expect(found.contains { $0.contains(": its first reply took ") && $0.contains("(100 ms)") }, "\(found)")
    settings.timeout = .seconds(60)
    #expect(!(await texts(settings)).contains { $0.contains("its first reply took") })
  }

  @Test func `the right to the list of namespaces is asked for`() async throws {
    let (server, base) = try await redis()
    try server.command(["ACL", "SETUSER", "semel", "on", ">word", "~orders:*", "&orders:*", "+@all"])
    var settings = base
    settings.namespace = "orders"
    settings.login.user = "semel"
    settings.login.password = "word"
    let found = await texts(settings)
    #expect(found.count == 1 && found[0].contains("lacks ~semel:namespaces;"), "\(found)")
    #expect(found[0].hasPrefix("warning: "))
  }
}

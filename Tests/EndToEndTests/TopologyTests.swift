import Foundation
import TestSupport
import Testing

/// Redis behind TLS, Sentinels and in a cluster, under the real binary.
@Suite(.slots(2))
struct TopologyTests {
  @Test func `orders run once on a Redis behind TLS, with a user whose password is in a file`() async throws {
    let certificates = try await Certificates()
    let server = try await certificates.server()
    let own = try await certificates.issue("semel", subject: "/CN=semel")
    let directory = TemporaryDirectory()
    let password = directory.file("password")
    try "word\n".write(toFile: password, atomically: true, encoding: .utf8)
    let port = FreePort.find()
    var configuration = Configuration(store: .redis)
    configuration.redisArguments = [
      "--tls-port", "\(port)", "--tls-cert-file", server.certificate, "--tls-key-file", server.key,
      "--tls-ca-cert-file", certificates.authority, "--user", "semel", "on", ">word", "~*", "&*", "+@all",
    ]
    configuration.storeMembers = [
      "url": "'rediss://localhost:\(port)/0'", "username": "semel", "password_file": "'\(password)'",
      "tls": "{ca: '\(certificates.authority)', certificate: '\(own.certificate)', key: '\(own.key)'}",
    ]
    try await Rig.run(configuration) { rig in
      let first = try await rig.order("k")
      expectExecuted(first)
      expectReplayed(try await rig.order("k"), of: first)
    }
  }

  @Test func `a cluster's master dies, and every order runs at most once`() async throws {
    let cluster = try await RedisCluster(replicas: 1)
    let nodes = cluster.ports.map { "'127.0.0.1:\($0)'" }.joined(separator: ", ")
    var configuration = Configuration()
    configuration.top["store"] = "{kind: redis, topology: cluster, nodes: [\(nodes)], timeout: 5s}"
    configuration.route["lease"] = "30s"
    try await Rig.run(configuration) { rig in
      for number in 0..<30 { expectExecuted(try await rig.order("before-\(number)")) }
      for (master, replicas) in zip(cluster.masters, cluster.replicas) {
        try await master.awaitCopies(at: replicas)
      }
      cluster.masters[1].kill()
      for number in 0..<30 {
        let key = "after-\(number)"
        let response = try await rig.order(key) { $0.status == 201 }
        #expect(response.idempotencyStatus == "executed" || response.idempotencyStatus == "replayed")
        #expect(rig.backend.runs(of: key) == 1)
      }
      for number in 0..<30 { expectReplayed(try await rig.order("before-\(number)"), 201) }
      try await rig.semel.counter("semel_store_failovers_total", becomes: 1)
      let text = try await rig.semel.admin.send("GET", "/readyz").text
      #expect(text.contains("store redis cluster 127.0.0.1:\(cluster.ports[0])"), "\(text)")
      let line = try #require(
        text.split(separator: "\n").first { $0.hasPrefix("store_topology cluster, masters ") })
      let masters = [cluster.masters[0], cluster.masters[2], cluster.replicas[1][0]]
      for master in masters {
        #expect(line.contains("127.0.0.1:\(master.port) (up)"), "\(text)")
        let node = "node=\"127.0.0.1:\(master.port)\""
        #expect(try await rig.semel.counter("semel_store_node_replies_total", label: node) > 0)
        #expect(try await Self.replySeconds(of: node, at: rig.semel) > 0)
      }
    }
  }

  /// The time that a Redis took for its replies. Not a whole number, as other counters are.
  private static func replySeconds(of node: String, at semel: SemelProcess) async throws -> Double {
    let page = try await semel.admin.send("GET", "/metrics").text
    let line = page.split(separator: "\n").first {
      $0.hasPrefix("semel_store_node_reply_seconds_total{") && $0.contains(node)
    }
    return try #require(line?.split(separator: " ").last.flatMap { Double($0) })
  }

  @Test func `open records are counted over all masters of a cluster`() async throws {
    let cluster = try await RedisCluster()
    let nodes = cluster.ports.map { "'127.0.0.1:\($0)'" }.joined(separator: ", ")
    var configuration = Configuration()
    configuration.top["store"] = "{kind: redis, topology: cluster, nodes: [\(nodes)], timeout: 5s}"
    configuration.route["lease"] = "30s"
    try await Rig.run(configuration, within: .seconds(120)) { rig in
      // The first order in the slots of each master is lost.
      let masters = Watched<Set<Int>>([])
      rig.backend.on("/v1/orders") { request in
        let master = try? cluster.master(of: "{\(request.requestID ?? "")}")
        let isFirst = masters.withValue { $0.insert(master?.port ?? 0).inserted }
        return isFirst ? .unanswered : Reply()
      }
      var count = 0
      while masters.value.count < cluster.masters.count {
        _ = try await rig.order("\(count)")
        count += 1
      }
      #expect(masters.value == Set(cluster.masters.map(\.port)))
      // Each of them is recorded as lost, whatever its first delivery was still waiting for.
      var losses = 0
      for number in 0..<count {
        if try await rig.order("\(number)").problem?.code == "outcome_unknown" { losses += 1 }
      }
      #expect(losses == 3)
      // The count that was made before, and the turn of the process that has made it.
      try await rig.semel.kill()
      for key in ["semel:census", "semel:census:turn"] {
        try cluster.master(of: key).command(["DEL", key])
      }
      try await rig.semel.start()
      let unknown = #"state="unknown""#
      try await rig.semel.counter(
        "semel_open_records", label: unknown, isAtLeast: 3, within: .seconds(40))
      try await rig.semel.counter("semel_open_records", label: unknown, becomes: 3)
    }
  }

  @Test func `without the replica nothing runs, and the same order runs once when it is back`() async throws {
    let master = try await RedisServer(arguments: ["--repl-diskless-sync-delay", "0"])
    let replica = try await RedisServer(
      arguments: ["--replicaof", "127.0.0.1", "\(master.port)", "--repl-diskless-sync-delay", "0"])
    try await Self.until("the replica follows") {
      try master.command(["INFO", "replication"])?.contains("state=online") == true
    }
    var configuration = Configuration()
    configuration.top["store"] =
      "{kind: redis, url: 'redis://127.0.0.1:\(master.port)/0', replicas: 1, failover_grace: 1s, timeout: 2s}"
    configuration.route["lease"] = "30s"
    try await Rig.run(configuration) { rig in
      let first = try await rig.order("before")
      expectExecuted(first)
      replica.kill()
      for key in ["k", "other"] {
        let refused = try await rig.order(key)
        expectRefused(refused, 503, "store_unavailable", retryable: true)
        expectRetryAfter(refused)
      }
      #expect(rig.backend.requests.count == 1)
      expectReplayed(try await rig.order("before"), of: first)
      try await replica.start()
      expectExecuted(try await rig.order("k") { $0.status == 201 })
      #expect(rig.backend.runs(of: "k") == 1)
      #expect(rig.backend.requests.last?.attempt == "1")
      expectReplayed(try await rig.order("k"), 201)
      let page = try await rig.semel.admin.send("GET", "/metrics").text
      let count = page.split(separator: "\n").first { $0.hasPrefix("semel_store_wait_seconds_count ") }
      #expect(count?.split(separator: " ").last.flatMap { Int($0) }.map { $0 > 0 } == true, "\(page)")
      #expect(try await rig.semel.counter("semel_store_claims_suspect_total") == 0)
    }
  }

  @Test func `slots that move between a cluster's masters are followed, and every order runs once`()
    async throws
  {
    let cluster = try await RedisCluster()
    let nodes = cluster.ports.map { "'127.0.0.1:\($0)'" }.joined(separator: ", ")
    var configuration = Configuration()
    configuration.top["store"] =
      "{kind: redis, topology: cluster, nodes: [\(nodes)], timeout: 5s, local_cache: 0B}"
    configuration.route["lease"] = "30s"
    try await Rig.run(configuration) { rig in
      // Their slots: those of some records, which leave the first master.
      var slots: [Int: String] = [:]
      for number in 0..<20 {
        expectExecuted(try await rig.order("\(number)"))
        let id = try #require(rig.backend.requests.last?.requestID)
        let slot = try #require(
          Int(try cluster.masters[0].command(["CLUSTER", "KEYSLOT", "{\(id)}"])?.dropFirst() ?? ""))
        if slot < 5461 { slots[slot] = "\(number)" }
      }
      try #require(!slots.isEmpty)
      #expect(try await rig.semel.counter("semel_store_redirects_total") == 0)
      for (slot, key) in slots {
        try await cluster.migrate(slot: slot, from: cluster.masters[0], to: cluster.masters[1]) {
          expectReplayed(try await rig.order(key), 201)
        }
        expectReplayed(try await rig.order(key), 201)
      }
      for kind in ["moved", "ask"] {
        try await rig.semel.counter("semel_store_redirects_total", label: #"kind="\#(kind)""#, isAtLeast: 1)
      }
      #expect(rig.backend.requests.count == 20)
    }
  }

  /// Waits until a condition holds that no event announces.
  private static func until(_ what: String, _ isSo: () throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(30)
    while try !isSo() {
      guard ContinuousClock.now < deadline else { throw TestFailure("not within 30 s: \(what)") }
      try await Task.sleep(for: .milliseconds(20))
    }
  }

  @Test func `connections follow a master that Sentinels replace, at which Semel has a login of its own`()
    async throws
  {
    let master = try await RedisServer(appendOnly: true)
    let replica = try await RedisServer(
      arguments: ["--replicaof", "127.0.0.1", "\(master.port)", "--repl-diskless-sync-delay", "0"])
    try await Self.until("the replica follows") {
      try replica.command(["INFO", "replication"])?.contains("master_link_status:up") == true
    }
    // Others may read there what this test waits for, and nothing that Semel needs.
    let sentinel = try await RedisServer(
      sentinelOf: "orders", master: master.port,
      lines: [
        "user watch on >word ~* &* +@all",
        "user default on nopass resetchannels -@all +ping +sentinel|replicas",
      ])
    let directory = TemporaryDirectory()
    let password = directory.file("password")
    try "word\n".write(toFile: password, atomically: true, encoding: .utf8)
    var configuration = Configuration()
    configuration.top["store"] = """
      {kind: redis, topology: sentinel, master_name: orders, nodes: ['127.0.0.1:\(sentinel.port)'], \
      timeout: 10s, sentinel: {username: watch, password_file: '\(password)'}}
      """
    configuration.route["lease"] = "300s"
    try await Rig.run(configuration) { rig in
      let first = try await rig.order("k")
      expectExecuted(first)
      while try sentinel.command(["SENTINEL", "REPLICAS", "orders"])?.contains("\(replica.port)") != true {
        try await Task.sleep(for: .milliseconds(20))
      }
      let gate = Gate()
      rig.backend.on("/v1/orders") { Reply(gate: $0["Idempotency-Key"] == "running" ? gate : nil) }
      async let running = rig.order("running")
      try await rig.backend.arrived(2)
      try await master.awaitCopies(at: [replica])
      master.kill()
      let next = try await rig.order("next") { $0.status == 201 }
      #expect(rig.backend.runs(of: "next") == 1, "\(next.text)")
      expectReplayed(try await rig.order("k"), of: first)
      // Long before a third of its lease.
      try await rig.semel.counter("semel_leases_renewed_total", isAtLeast: 1)
      gate.open()
      #expect(try await running.status == 201)
      #expect(try await rig.semel.counter("semel_store_claims_suspect_total") == 0)
      try await rig.semel.counter("semel_store_failovers_total", becomes: 1)
      // The connection of each event loop has moved.
      let topology = "store_topology sentinel, master 127.0.0.1:\(replica.port) (up)"
      while try await !rig.semel.admin.send("GET", "/readyz").text.contains(topology) {
        try await Task.sleep(for: .milliseconds(20))
      }
    }
  }

  @Test func `a live check names a Redis' faults, and ends with 1`() async throws {
    let redis = try await RedisServer(arguments: [
      "--user", "semel", "on", ">word", "~semel:*", "&semel:*", "+@all", "-scan",
    ])
    let directory = TemporaryDirectory()
    let file = directory.file("config.yaml")
    let text = """
      upstreams: {orders: {url: "http://127.0.0.1:9"}}
      store: {kind: redis, url: "redis://semel:word@127.0.0.1:\(redis.port)/0"}
      """
    try text.write(toFile: file, atomically: true, encoding: .utf8)
    let process = try ManagedProcess([SemelProcess.binary, "check", "--live", file])
    #expect(try await process.exit() == .code(1))
    #expect(
      process.errors.contains("warning: store: 127.0.0.1:\(redis.port): appendonly is no"),
      "\(process.errors)")
    #expect(
      process.errors.contains("lacks +scan; all that it needs is: user semel on >PASSWORD"),
      "\(process.errors)")
    try redis.command(["ACL", "SETUSER", "semel", "+scan"])
    let again = try ManagedProcess([SemelProcess.binary, "check", "--live", file])
    #expect(try await again.exit() == .code(0))
  }
}

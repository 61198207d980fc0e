import Idempotency
import Logging
import NIOCore
import Platform
import Store
import Synchronization
import TLS
import TestSupport
import Testing
import Wire

/// A master that Sentinels name, on real servers.
@Suite(.timeLimit(.minutes(2)))
struct SentinelTests {
  /// Sentinel leaves a master to its clients for about a second after it has promoted the replica, and what they change
  /// there meanwhile is lost. An operator who holds the changes up loses none.
  @Test(arguments: [true, false])
  func `a planned switch fails no request, and subscriptions move as well`(holdsChanges: Bool) async throws {
    let trio = try await SentinelTrio()
    var (master, heir) = (trio.master, trio.replica)
    try await RedisNode.run(trio.settings()) { node in
      let sibling = node.sibling()
      let before = try await node.store.completed()
      let open = try await node.store.granted(Samples.request(lease: .seconds(600)))
      let watch = try await sibling.store.watch(open.id)
      try await Pace.within(.seconds(2)) {
        // Sentinel takes ten seconds for it after an earlier round, and cuts connections.
        try await until("the master has its replica") { (try? master.isFollowed(by: heir)) == true }
        // Else the switch could lose what no replica has.
        try await master.awaitCopies(at: [heir])
        let load = Load()
        let connections = node.store.store.counters.connections
        let call: @Sendable () async throws -> Void = { _ = try await node.store.completed() }
        try await load.run(by: 6, on: node.store.context.executor, call) {
          try await load.reached(50)
          try await trio.switchOver(from: master, to: heir, holdsChanges: holdsChanges)
          try await until("the new master is used") { node.store.store.counters.connections > connections }
          try await load.reached(load.count + 50)
        }
        if holdsChanges { try master.command(["CLIENT", "UNPAUSE"]) }
        (master, heir) = (heir, master)
        return load.longestPause
      }
      let suspects = node.store.store.counters.suspects
      #expect(suspects == 0 || !holdsChanges)
      #expect(try await node.store.renew(open) == .done)
      #expect(node.store.store.counters.suspects == suspects)
      #expect(try await node.store.find(before.id).name == .completed)
      try await until("the subscription has moved") { sibling.subscriber.counters.connections >= 2 }
      async let ended = StoreWatchTests.wait(watch, for: open.id, on: sibling.store) { $0 == .completed }
      #expect(try await node.store.complete(open, with: Samples.completion()).outcome == .done)
      #expect(try await ended == .completed)
      #expect(node.subscriber.lossCount == 0)
      watch.cancel()
      sibling.close()
    }
  }

  @Test func `requests that meet a killed master wait for the next one`() async throws {
    let trio = try await SentinelTrio()
    // Sentinels that vote for two leaders at once begin again after eight seconds.
    try await RedisNode.run(trio.settings(timeout: .seconds(30))) { node in
      let before = try await node.store.completed()
      let open = try await node.store.granted(Samples.request())
      try await trio.master.awaitCopies(at: [trio.replica])
      // All of these claims are on their way when it dies.
      trio.master.freeze()
      let written = node.store.store.counters.roundTrips
      async let claims = Self.grants(40, by: node)
      try await until("the claims are written") { node.store.store.counters.roundTrips >= written + 40 }
      trio.master.kill()
      let later = try await node.store.granted(Samples.request())
      for claim in try await claims + [later] {
        #expect(claim.attempt == 1)
        #expect(try await node.store.renew(claim) == .done)
        #expect(try await node.store.claim(Samples.again(claim)).taken == .inFlight)
      }
      #expect(try await node.store.complete(open, with: Samples.completion()).outcome == .done)
      #expect(try await node.store.find(before.id).name == .completed)
      #expect(node.store.store.counters.suspects == 0)
      #expect(node.subscriber.failovers == 1)
      #expect(node.subscriber.lossCount == 0)
    }
  }

  /// Claims of as many new records at once.
  private static func grants(_ count: Int, by node: RedisNode) async throws -> [Claim] {
    try await withThrowingTaskGroup(of: Claim.self) { group in
      for _ in 0..<count { group.addTask { try await node.store.granted(Samples.request()) } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
  }

  @Test func `Sentinels that are dead, hang, lie or know nothing are skipped`() async throws {
    let trio = try await SentinelTrio()
    let frozen = try await RedisServer(sentinelOf: "orders", master: trio.master.port)
    frozen.freeze()
    defer { frozen.thaw() }
    let ignorant = try await RedisServer(sentinelOf: "others", master: trio.master.port)
    let replica = trio.replica.port
    let liar = try ScriptedRedis { words in
      words[0] == "SENTINEL" ? ScriptedRedis.array(["127.0.0.1", "\(replica)"]) : "+OK\r\n"
    }
    let ports = [FreePort.find(), frozen.port, ignorant.port, liar.port] + trio.sentinels.map(\.port)
    try await RedisNode.run(.orders(by: ports, timeout: .seconds(20))) { node in
      _ = try await node.store.completed()
      #expect(liar.commands.contains(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "orders"]))
    }
  }

  @Test func `each fault of a Sentinel has an error of its own`() async throws {
    let master = try await RedisServer()
    let replica = try await RedisServer(arguments: ["--replicaof", "127.0.0.1", "\(master.port)"])
    let ignorant = try await RedisServer(sentinelOf: "others", master: master.port)
    let liar = try ScriptedRedis { words in
      words[0] == "SENTINEL" ? ScriptedRedis.array(["127.0.0.1", "\(replica.port)"]) : "+OK\r\n"
    }
    let frozen = try await RedisServer(sentinelOf: "orders", master: master.port)
    frozen.freeze()
    defer { frozen.thaw() }
    for (port, fault) in [
      (FreePort.find(), "cannot be reached"), (ignorant.port, "knows no master of the name orders"),
      (liar.port, "it is no master but a slave"), (frozen.port, "does not reply"),
    ] {
      // A frozen one is given up after two seconds.
      try await RedisNode.run(.orders(by: [port], timeout: .seconds(5))) { node in
        let error = await #expect(throws: StoreError.self) { try await node.store.find(Samples.id()) }
        guard case .unavailable(let reason) = error else { throw Unexpected(what: "\(error as Any)") }
        #expect(reason.contains(fault), "\(reason)")
      }
    }
  }

  @Test func `another master is found within a second although no push came`() async throws {
    let (one, other) = (try await RedisServer(), try await RedisServer())
    let silent = try SilentSentinel(naming: one)
    try await RedisNode.run(.orders(by: [silent.port])) { node in
      _ = try await node.store.completed()
      var next = other
      // Queries are half a second apart. The rest is for the connections.
      try await Pace.within(.seconds(1)) {
        let master = next
        silent.name(master)
        let start = BootInstant.now
        let end = try await Pace.time(of: "the other master's use") {
          try master.connectionCount == 2
        }
        next = master.port == one.port ? other : one
        return end - start
      }
    }
  }

  @Test func `a push alone names the master`() async throws {
    let master = try await RedisServer()
    let news = "orders 127.0.0.1 1 127.0.0.1 \(master.port)"
    let sentinel = try ScriptedRedis { words in
      // No query gets a reply.
      if words[0] == "SENTINEL" { return nil }
      guard words == ["SUBSCRIBE", "+switch-master"] else { return "+OK\r\n" }
      let confirmation = "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"
      return confirmation + ScriptedRedis.array(["message", "+switch-master", news])
    }
    try await RedisNode.run(.orders(by: [sentinel.port])) { node in
      let claim = try await node.store.completed()
      #expect(try master.text(of: claim, node).contains("completed"))
      #expect(sentinel.commands.contains { $0.first == "SENTINEL" })
    }
  }

  @Test func `without the Sentinel in use the next one is asked, and the others replace a dead master`()
    async throws
  {
    let trio = try await SentinelTrio()
    // Sentinels that vote for two leaders at once begin again after eight seconds.
    try await RedisNode.run(trio.settings(timeout: .seconds(30))) { node in
      let before = try await node.store.completed()
      let open = try await node.store.granted(Samples.request())
      let dead = try await trio.sentinelInUse()
      trio.sentinels[dead].kill()
      let next = try await trio.sentinelInUse()
      #expect(next != dead)
      // Of the master nothing has changed.
      #expect(node.store.store.counters.connections == 1 && node.subscriber.failovers == 0)
      #expect(try await node.store.find(before.id).name == .completed)
      let others = trio.sentinels.indices.filter { $0 != dead }
      for other in others {
        try await until("the others miss the dead one, and suffice") {
          try trio.sentinels[other].isQuorate(with: 2)
        }
      }
      try await trio.master.awaitCopies(at: [trio.replica])
      trio.master.kill()
      let claim = try await node.store.granted(Samples.request())
      #expect(claim.attempt == 1)
      #expect(try trio.replica.text(of: claim, node).contains("in_flight"))
      #expect(try await node.store.renew(open) == .done)
      #expect(try await node.store.complete(open, with: Samples.completion()).outcome == .done)
      #expect(try await node.store.find(before.id).name == .completed)
      #expect(node.store.store.counters.suspects == 0)
      #expect(node.subscriber.failovers == 1)
      #expect(node.subscriber.lossCount == 0)
      #expect(
        node.store.store.counters.topology == "sentinel, master 127.0.0.1:\(trio.replica.port) (up)")
    }
  }

  /// The Sentinel that has carried out a switch knows of it first. Whoever asked another one about it would be led
  /// back.
  @Test func `a switched master is kept while the other Sentinels still name the former one`() async throws {
    for _ in 0..<3 {
      let (former, next) = (try await RedisServer(), try await RedisServer())
      let first = try SilentSentinel(naming: former)
      let others = [try SilentSentinel(naming: former), try SilentSentinel(naming: former)]
      var isKept = false
      try await RedisNode.run(.orders(by: ([first] + others).map(\.port))) { node in
        _ = try await node.store.completed()
        first.name(next)
        try await until("the next master is used") { try next.connectionCount == 2 }
        let asked = first.queryCount
        try await until("it is asked again, and again") { first.queryCount >= asked + 2 }
        isKept = try node.subscriber.failovers == 1 && former.connectionCount == 0
      }
      // On a busy machine the first one may be too late with a reply. In three rounds it seldom is.
      if isKept, others.allSatisfy({ $0.queryCount == 0 }) { return }
    }
    Issue.record("the other Sentinels were asked each time")
  }

  @Test func `a Sentinel behind TLS is queried, and a foreign one is not trusted`() async throws {
    let certificates = try await Certificates()
    let foreign = try await Certificates()
    let master = try await RedisServer()
    for (authority, isTrusted) in [(certificates, true), (foreign, false)] {
      let own = try await authority.issue("sentinel", subject: "/CN=localhost", names: ["DNS:localhost"])
      let port = FreePort.find()
      let sentinel = try await RedisServer(
        sentinelOf: "orders", master: master.port,
        lines: [
          "tls-port \(port)", "tls-cert-file \(own.certificate)", "tls-key-file \(own.key)",
          "tls-ca-cert-file \(authority.authority)", "tls-auth-clients no",
        ])
      var login = RedisLogin()
      login.tls = try ClientTLS(ClientTLSFiles(ca: certificates.authority))
      var settings = RedisEndpointSettings.orders(by: [port], timeout: isTrusted ? .seconds(10) : 1500)
      settings.topology = .sentinel([.tcp(host: "localhost", port: port)], master: "orders", login: login)
      try await RedisNode.run(settings) { node in
        if isTrusted {
          _ = try await node.store.completed()
        } else {
          await #expect(throws: StoreError.self) { try await node.store.find(Samples.id()) }
        }
      }
      sentinel.stop()
    }
  }

  @Test func `Sentinel and the master that it names by its host are both behind TLS`() async throws {
    let certificates = try await Certificates()
    // No address is in it: the host's name is what is verified.
    let own = try await certificates.issue("server", subject: "/CN=localhost", names: ["DNS:localhost"])
    let files = [
      "tls-cert-file", own.certificate, "tls-key-file", own.key, "tls-ca-cert-file", certificates.authority,
      "tls-auth-clients", "no",
    ]
    let (port, sentinelPort) = (FreePort.find(), FreePort.find())
    let options = stride(from: 0, to: files.count, by: 2).map { (files[$0], files[$0 + 1]) }
    let master = try await RedisServer(
      arguments: ["--tls-port", "\(port)"] + options.flatMap { ["--\($0)", $1] })
    let sentinel = try await RedisServer(
      sentinelOf: "others", master: master.port,
      lines: options.map { "\($0) \($1)" } + [
        "tls-port \(sentinelPort)", "tls-replication yes", "sentinel resolve-hostnames yes",
        "sentinel announce-hostnames yes", "sentinel monitor orders localhost \(port) 1",
      ])
    var settings = RedisEndpointSettings.orders(by: [sentinelPort])
    settings.login.tls = try ClientTLS(ClientTLSFiles(ca: certificates.authority))
    settings.topology = .sentinel(
      [.tcp(host: "localhost", port: sentinelPort)], master: "orders", login: settings.login)
    try await RedisNode.run(settings) { node in
      let claim = try await node.store.completed()
      #expect(try master.text(of: claim, node).contains("completed"))
      #expect(node.store.store.counters.topology == "sentinel, master localhost:\(port) (up)")
    }
    sentinel.stop()
  }

  @Test func `Sentinel and Redis have logins of their own`() async throws {
    let master = try await RedisServer(arguments: ["--user", "semel", "on", ">word", "~*", "&*", "+@all"])
    let sentinel = try await RedisServer(
      sentinelOf: "orders", master: master.port,
      lines: ["user watch on >other ~* &* +@all", "user default off"])
    var settings = RedisEndpointSettings.orders(by: [sentinel.port])
    settings.login.user = "semel"
    settings.login.password = "word"
    var login = RedisLogin()
    login.user = "watch"
    login.password = "other"
    settings.topology = .sentinel(
      [.tcp(host: "localhost", port: sentinel.port)], master: "orders", login: login)
    try await RedisNode.run(settings) { node in _ = try await node.store.completed() }
  }
}

/// A Sentinel that names a master, and pushes nothing.
final class SilentSentinel: Sendable {
  private let server: ScriptedRedis
  private let named: Named

  private final class Named: Sendable {
    let port: Mutex<Int>

    init(_ port: Int) { self.port = Mutex(port) }
  }

  var port: Int { server.port }
  /// The number of questions for the master.
  var queryCount: Int { server.commands.count { $0.first == "SENTINEL" } }

  convenience init(naming master: RedisServer) throws { try self.init(naming: master.port) }

  init(naming port: Int) throws {
    let named = Named(port)
    self.named = named
    server = try ScriptedRedis { words in
      switch words[0] {
      case "SENTINEL": ScriptedRedis.array(["127.0.0.1", "\(named.port.withLock { $0 })"])
      case "SUBSCRIBE": "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"
      default: "+OK\r\n"
      }
    }
  }

  /// Names another master from now on.
  func name(_ master: RedisServer) { name(master.port) }

  func name(_ port: Int) { named.port.withLock { $0 = port } }
}

extension RedisEndpointSettings {
  /// The master `orders` that the Sentinels on these ports name.
  static func orders(by ports: [Int], timeout: Milliseconds = .seconds(10))
    -> RedisEndpointSettings
  {
    let sentinels = ports.map { ServerAddress.tcp(host: "127.0.0.1", port: $0) }
    var settings = RedisEndpointSettings(address: sentinels[0])
    settings.topology = .sentinel(sentinels, master: "orders", login: RedisLogin())
    settings.timeout = timeout
    settings.inspectionInterval = .seconds(3600)
    settings.namespace = ownNamespace()
    return settings
  }
}

/// Waits until a condition holds that no event announces.
func until(_ what: String, _ isSo: () async throws -> Bool) async throws {
  let giveUp = ContinuousClock.now + .seconds(30)
  while try await !isSo() {
    guard ContinuousClock.now < giveUp else { throw Unexpected(what: "not within 30 s: \(what)") }
    try await Task.sleep(for: .milliseconds(20))
  }
}

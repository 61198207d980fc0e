import Idempotency
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
  /// A master, its replica and a Sentinel.
  private struct Trio {
    let master: RedisServer
    let replica: RedisServer
    let sentinel: RedisServer

    init() async throws {
      master = try await RedisServer(appendOnly: true)
      replica = try await RedisServer(
        arguments: ["--replicaof", "127.0.0.1", "\(master.port)", "--repl-diskless-sync-delay", "0"])
      sentinel = try await RedisServer(sentinelOf: "orders", master: master.port)
      try await until("the replica follows") {
        try replica.command(["INFO", "replication"])?.contains("master_link_status:up") == true
      }
      // A Sentinel reads a master's replicas once in ten seconds.
      try sentinel.command(["SENTINEL", "RESET", "orders"])
      try await until("the Sentinel knows the replica") {
        try sentinel.command(["SENTINEL", "REPLICAS", "orders"])?.contains("\(replica.port)") == true
          && sentinel.command(["SENTINEL", "REPLICAS", "orders"])?.contains("s_down") == false
      }
    }

    func settings(timeout: Milliseconds = .seconds(10)) -> RedisEndpointSettings {
      .orders(by: [sentinel.port], timeout: timeout)
    }
  }

  @Test func `a switched master is followed by records and subscriptions, and no request fails`() async throws
  {
    let trio = try await Trio()
    try await RedisNode.run(trio.settings()) { node in
      let sibling = node.sibling()
      let before = try await node.store.completed()
      let open = try await node.store.granted(Samples.request())
      let watch = try await sibling.store.watch(open.id)
      // Else the switch could lose what no replica has.
      try trio.master.command(["WAIT", "1", "5000"])
      let start = BootInstant.now.nanoseconds
      // A Sentinel that has not read the replica's state yet refuses.
      try await until("the Sentinel switches") {
        try trio.sentinel.command(["SENTINEL", "FAILOVER", "orders"]) == "+OK"
      }
      try await until("the replica is promoted") { trio.replica.isMaster }
      try await until("a request runs on the new master") {
        try await node.store.ping()
        return node.store.store.counters.connections >= 2
      }
      #expect(BootInstant.now.nanoseconds - start < 15_000_000_000)
      #expect(try await node.store.find(before.id).name == .completed)
      try await until("the subscription has moved") { sibling.subscriber.counters.connections >= 2 }
      try await sibling.store.watch(open.id).cancel()
      async let woken: Void = watch.changed(within: .seconds(20))
      #expect(try await node.store.complete(open, with: Samples.completion()).outcome == .done)
      await woken
      #expect(try await sibling.store.find(open.id).name == .completed)
      watch.cancel()
      sibling.close()
    }
  }

  @Test func `a request that meets a killed master waits for the next one`() async throws {
    let trio = try await Trio()
    try await RedisNode.run(trio.settings()) { node in
      let before = try await node.store.completed()
      try trio.master.command(["WAIT", "1", "5000"])
      trio.master.kill()
      #expect(try await node.store.granted(Samples.request()).attempt == 1)
      #expect(try await node.store.find(before.id).name == .completed)
      #expect(node.subscriber.failovers == 1)
    }
  }

  @Test func `Sentinels that are dead, hang, lie or know nothing are skipped`() async throws {
    let trio = try await Trio()
    let frozen = try await RedisServer(sentinelOf: "orders", master: trio.master.port)
    frozen.freeze()
    defer { frozen.thaw() }
    let ignorant = try await RedisServer(sentinelOf: "others", master: trio.master.port)
    let replica = trio.replica.port
    let liar = try ScriptedRedis { words in
      words[0] == "SENTINEL" ? ScriptedRedis.array(["127.0.0.1", "\(replica)"]) : "+OK\r\n"
    }
    let ports = [FreePort.find(), frozen.port, ignorant.port, liar.port, trio.sentinel.port]
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
    for (port, fault) in [
      (FreePort.find(), "cannot be reached"), (ignorant.port, "knows no master of the name orders"),
      (liar.port, "it is no master but a slave"),
    ] {
      try await RedisNode.run(.orders(by: [port], timeout: 1500)) { node in
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
      silent.name(other)
      let start = BootInstant.now.nanoseconds
      try await until("the other master is in use") {
        try other.command(["CLIENT", "LIST"])?.split(separator: "name=semel").count == 3
      }
      // Queries are a second apart.
      #expect(BootInstant.now.nanoseconds - start < 10_000_000_000)
    }
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

  init(naming master: RedisServer) throws {
    let named = Named(master.port)
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
  func name(_ master: RedisServer) { named.port.withLock { $0 = master.port } }
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
    settings.namespace = "test-\(UInt64.random(in: 0...UInt64.max))"
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

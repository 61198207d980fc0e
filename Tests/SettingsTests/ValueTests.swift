import Foundation
import Idempotency
import Settings
import TLS
import TestSupport
import Testing
import Wire

struct ValueTests {
  @Test(arguments: [
    ("0s", 0), ("250ms", 250), ("30s", 30_000), ("5m", 300_000), ("24h", 86_400_000), ("30d", 2_592_000_000),
    ("36500d", 3_153_600_000_000),
  ]) func `durations have a unit`(text: String, milliseconds: Int64) throws {
    #expect(try load(upstream + "drain_delay: \(text)").drainDelay == Milliseconds(milliseconds))
  }

  @Test(arguments: [
    ("0B", 0), ("1500B", 1500), ("64KiB", 65_536), ("1MiB", 1_048_576), ("1GiB", 1_073_741_824),
  ])
  func `sizes have a unit`(text: String, bytes: Int) throws {
    #expect(try load(upstream + "store: {local_cache: \(text)}").store.localCacheBytes == bytes)
  }

  @Test(arguments: [
    ("127.0.0.1:8080", ListenSettings.tcp(host: "127.0.0.1", port: 8080)),
    ("0.0.0.0:80", .tcp(host: "0.0.0.0", port: 80)), ("[::1]:8080", .tcp(host: "::1", port: 8080)),
    ("localhost:0", .tcp(host: "localhost", port: 0)),
    ("unix:/run/semel.sock", .unix(path: "/run/semel.sock")),
  ]) func `listeners are addresses or sockets`(text: String, expected: ListenSettings) throws {
    #expect(try load(upstream + "listen: [{address: \"\(text)\"}]").listen == [expected])
  }

  @Test(arguments: ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"])
  func `an operators' listener on loopback needs no token`(address: String) throws {
    #expect(try load(upstream + "admin: {address: \"\(address)\"}").admin?.tokenFile == nil)
  }

  @Test func `a token's file of the working directory may be made by the start`() throws {
    let settings = try load(upstream + "admin: {address: \"127.0.0.1:1\", token_file: none-here.token}")
    #expect(settings.admin?.tokenFile == "none-here.token")
  }

  @Test func `an operators' listener elsewhere takes a token`() throws {
    let directory = TemporaryDirectory()
    let file = directory.file("token")
    try "secret".write(toFile: file, atomically: true, encoding: .utf8)
    let settings = try load(upstream + "admin: {address: \"0.0.0.0:1\", token_file: \"\(file)\"}")
    #expect(settings.admin == AdminSettings(host: "0.0.0.0", port: 1, tokenFile: file))
    let named = try load(upstream + "admin: {address: '[::1]:1', hosts: [Semel.internal, localhost]}")
    #expect(named.admin?.hosts == ["semel.internal", "localhost"])
  }

  @Test(arguments: [
    ("http://127.0.0.1:9000", ServerAddress.tcp(host: "127.0.0.1", port: 9000)),
    ("http://backend", .tcp(host: "backend", port: 80)),
    ("http://[::1]:9000/", .tcp(host: "::1", port: 9000)),
    ("unix:/run/app.sock", .unix(path: "/run/app.sock")),
  ]) func `upstreams are addresses or sockets`(text: String, expected: ServerAddress) throws {
    let settings = try load("upstreams: {b: {url: \"\(text)\"}}")
    #expect(settings.upstreams["b"]?.address == expected)
    #expect(settings.onlyUpstream?.name == "b")
  }

  @Test func `all members of an upstream are read`() throws {
    let settings = try load(
      """
      upstreams:
        b: {url: "http://h:1", connect_timeout: 1s, response_timeout: 2s, settle: 0s, idle_timeout: 3s,
            connect_retries: 0, max_connections: 7}
      """)
    var expected = UpstreamSettings(name: "b", address: .tcp(host: "h", port: 1))
    expected.connectTimeout = 1000
    expected.responseTimeout = 2000
    expected.settle = 0
    expected.idleTimeout = 3000
    expected.connectRetries = 0
    expected.maxConnections = 7
    #expect(settings.upstreams == ["b": expected])
  }

  @Test func `a Redis has user, password, database and timeout`() throws {
    let text =
      upstream
      + "store: {kind: redis, url: \"redis://semel:p%40%2Fs@[::1]:7000/3\", timeout: 1s, require_durable: true, namespace: n}"
    var expected = RedisSettings(address: .tcp(host: "::1", port: 7000))
    expected.login.user = "semel"
    expected.login.password = "p@/s"
    expected.database = 3
    let store = try load(text).store
    #expect(store.place == .redis(expected))
    #expect(store.timeout == 1000)
    #expect(store.requireDurable)
    #expect(store.namespace == "n")
  }

  @Test func `a change may have to be at replicas and on disk before it counts`() throws {
    let redis = "store: {kind: redis, url: \"redis://h\""
    var expected = RedisSettings(address: .tcp(host: "h", port: 6379))
    #expect(try load(upstream + redis + ", replicas: 0, durable: memory}").store.place == .redis(expected))
    expected.copies.replicas = 2
    expected.copies.medium = .waitaof
    expected.copies.failoverGrace = 500
    #expect(
      try load(upstream + redis + ", replicas: 2, durable: waitaof, failover_grace: 500ms}").store.place
        == .redis(expected))
  }

  @Test func `a Redis can stand on a socket, and has a port of its own`() throws {
    let socket = try load(upstream + "store: {kind: redis, url: \"unix:/run/redis.sock\"}")
    #expect(socket.store.place == .redis(RedisSettings(address: .unix(path: "/run/redis.sock"))))
    let bare = try load(upstream + "store: {kind: redis, url: \"redis://h\"}")
    #expect(bare.store.place == .redis(RedisSettings(address: .tcp(host: "h", port: 6379))))
  }

  @Test func `a Redis behind TLS has its files, and a password that a file holds`() throws {
    let directory = TemporaryDirectory()
    let file = directory.file("password")
    try "word\n".write(toFile: file, atomically: true, encoding: .utf8)
    let text =
      upstream
      + "store: {kind: redis, url: \"rediss://h/1\", username: semel, password_file: \"\(file)\", tls: {server_name: x}}"
    var expected = RedisSettings(address: .tcp(host: "h", port: 6379))
    expected.database = 1
    expected.login.user = "semel"
    expected.login.passwordFile = file
    expected.login.tls = ClientTLSFiles(serverName: "x")
    #expect(try load(text).store.place == .redis(expected))
    let shown = try load(text).shownJSON
    #expect(
      shown.contains("\"url\":\"rediss://h:6379/1\",\"username\":\"semel\",\"password_file\":"), "\(shown)")
  }

  @Test func `a master that Sentinels name has their addresses and their login`() throws {
    let directory = TemporaryDirectory()
    let file = directory.file("password")
    try "word\n".write(toFile: file, atomically: true, encoding: .utf8)
    let text =
      upstream
      + "store: {kind: redis, topology: sentinel, master_name: orders, nodes: [a, \"[::1]:7\"], tls: {}, sentinel: {username: watch, password_file: \"\(file)\", tls: {server_name: s}}}"
    var expected = RedisSettings(
      .sentinel([.tcp(host: "a", port: 26379), .tcp(host: "::1", port: 7)], master: "orders"))
    expected.login.tls = ClientTLSFiles()
    expected.sentinelLogin.user = "watch"
    expected.sentinelLogin.passwordFile = file
    expected.sentinelLogin.tls = ClientTLSFiles(serverName: "s")
    #expect(try load(text).store.place == .redis(expected))
    #expect(expected.place == "sentinel orders by a:26379, [::1]:7")
  }

  @Test func `limits and log are read`() throws {
    let settings = try load(
      upstream + """
        limits: {max_connections: 1, max_in_flight: 2, body_memory: 3MiB, header_bytes: 4KiB, header_timeout: 5s, body_timeout: 6s, idle_timeout: 7s}
        log: {level: trace, format: text, access: false}
        """)
    var limits = LimitSettings()
    limits.maxConnections = 1
    limits.maxInFlight = 2
    limits.bodyMemory = 3 << 20
    limits.headerBytes = 4 << 10
    limits.headerTimeout = 5000
    limits.bodyTimeout = 6000
    limits.idleTimeout = 7000
    #expect(settings.limits == limits)
    #expect(settings.log.level == .trace)
    #expect(settings.log.format == .text)
    #expect(!settings.log.access)
  }
}

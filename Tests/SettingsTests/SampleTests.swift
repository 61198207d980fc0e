import Foundation
import Idempotency
import Settings
import Testing
import Wire

/// The sample that stands at the top of the repository.
enum Sample {
  static let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""

  private static let path =
    "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/config.yaml"
}

struct SampleTests {
  @Test func `the sample states the defaults of the code`() throws {
    let settings = try load(Sample.text)
    let backend = UpstreamSettings(name: "backend", address: .tcp(host: "127.0.0.1", port: 9000))
    var createOrder = RoutePolicy(
      name: "create-order",
      match: RouteMatch(methods: ["POST"], path: try PathPattern(parsing: "/v1/orders")), upstream: backend)
    createOrder.caller = CallerPolicy(parts: [.header("authorization")])
    var rest = RoutePolicy(name: "everything-else", match: RouteMatch(), upstream: backend)
    rest.idempotency = .off

    var expected = Settings()
    expected.admin = AdminSettings(host: "127.0.0.1", port: 8081)
    expected.upstreams = ["backend": backend]
    expected.routes = [createOrder, rest]
    expected.warnings = settings.warnings
    #expect(settings == expected)
    // Its comment says so, too.
    #expect(settings.warnings.map(\.path) == ["routes[0].caller"])
  }

  @Test func `the defaults of the code are those of the contract`() throws {
    let settings = try load(Sample.text)
    #expect(settings.listen == [.tcp(host: "127.0.0.1", port: 8080)])
    #expect(settings.workers == 0)
    #expect(settings.drainDelay == 0)
    #expect(settings.shutdownGrace == 35_000)
    #expect(settings.store.place == .embedded(path: "semel.db"))
    #expect(settings.store.localCacheBytes == 67_108_864)
    #expect(settings.store.namespace == "semel")
    #expect(!settings.store.requireDurable)
    #expect(settings.store.compression == .auto)
    #expect(settings.limits.maxConnections == 10_000)
    #expect(settings.limits.maxInFlight == 4096)
    #expect(settings.limits.callerInFlight == 256)
    #expect(settings.limits.callerNewKeys == nil)
    #expect(settings.limits.bodyMemory == 268_435_456)
    #expect(settings.limits.headerBytes == 65_536)
    #expect(settings.limits.headerTimeout == 10_000)
    #expect(settings.limits.writeTimeout == 30_000)
    #expect(settings.limits.bodyTimeout == 30_000)
    #expect(settings.limits.idleTimeout == 75_000)
    #expect(settings.limits.http2MaxStreams == 100)
    #expect(settings.log.level == .info)
    #expect(settings.log.format == .json)
    #expect(settings.log.access)
    #expect(settings.log.replaySample == 1)
    #expect(settings.policyDocument == .on)
    let backend = try #require(settings.upstreams["backend"])
    #expect(backend.host == .preserve)
    #expect(backend.connectTimeout == 2000)
    #expect(backend.responseTimeout == 30_000)
    #expect(backend.settle == 30_000)
    #expect(backend.idleTimeout == 1500)
    #expect(backend.connectRetries == 3)
    #expect(backend.maxConnections == 256)
  }

  @Test func `a route's defaults are those of the contract`() throws {
    let route = try #require(try load(Sample.text).routes.first)
    #expect(route.idempotency == .required)
    #expect(route.key.from == [.header("idempotency-key")])
    #expect(route.key.format == .any)
    #expect(route.key.minLength == 1)
    #expect(route.key.maxLength == 255)
    #expect(route.caller?.anonymous == .refuse)
    #expect(route.endpoint == .path)
    #expect(route.recipe == Recipe(body: .auto, headers: [], ignore: []))
    #expect(route.mismatchStatus == 409)
    #expect(route.inFlightStatus == 409)
    #expect(!route.echoesKey)
    #expect(!route.methodOverride)
    #expect(route.duplicates == .wait)
    #expect(route.waitTimeout == 10_000)
    #expect(route.maxWaiters == 64)
    #expect(route.lease == 30_000)
    #expect(route.retention == 86_400_000)
    #expect(route.remember == 172_800_000)
    #expect(route.unknownRetention == 2_592_000_000)
    #expect(route.onUnknown == .hold)
    #expect(route.maxAttempts == nil)
    #expect(route.onStoreFailure == .closed)
    #expect(route.maxRequestBody == 1_048_576)
    #expect(route.maxResponseBody == 1_048_576)
    #expect(route.setCookie == .drop)
    #expect(route.record == .response)
    #expect(route.replay == ReplayPolicy())
    #expect(route.spelling == .lenient)
    #expect(route.contentCoding == .identity)
    #expect(route.forwardKey == .keep)
    #expect(route.outcomes == OutcomeTable())
    #expect(route.released == .keep)
    #expect(route.responseTimeout == nil)
    #expect(route.bodyTimeout == nil)
    #expect(route.timeToResponse == 30_000)
    #expect(!route.stream)
    #expect(route.cors == nil)
  }

  /// A wrong member in every mapping draws out all that is allowed there.
  @Test(arguments: [
    "kind: embedded", "kind: redis, url: \"rediss://h\"",
    "kind: redis, topology: sentinel, nodes: [h], master_name: m",
    "kind: redis, topology: cluster, nodes: [h]",
  ])
  func `the sample sets or explains every member that is known`(store: String) {
    let text = """
      zzzzzz: 1
      listen: [{address: "127.0.0.1:1", zzzzzz: 1, tls: {zzzzzz: 1}}]
      admin: {address: "127.0.0.1:2", ui: {zzzzzz: 1}, zzzzzz: 1}
      upstreams: {backend: {url: "https://127.0.0.1:9000", tls: {zzzzzz: 1}, zzzzzz: 1}}
      tracing: {otlp: "http://127.0.0.1:4318", zzzzzz: 1}
      jwt: {zzzzzz: 1}
      store: {\(store), encryption: {zzzzzz: 1}, zzzzzz: 1}
      limits: {zzzzzz: 1}
      log: {zzzzzz: 1}
      routes:
        - name: r
          match: {zzzzzz: 1}
          key: {zzzzzz: 1}
          caller: {parts: [address], zzzzzz: 1}
          fingerprint: {zzzzzz: 1}
          outcomes: {zzzzzz: 1}
          cors: {zzzzzz: 1}
          replay: {zzzzzz: 1}
          retries: {zzzzzz: 1}
          reconcile: {zzzzzz: 1}
          zzzzzz: 1
      """
    let marker = "unknown member; allowed are "
    let allowed = issues(text).filter { $0.contains(marker) }.compactMap {
      $0.split(separator: marker, omittingEmptySubsequences: false).last
    }
    #expect(allowed.count == 23)
    let members = Set(Sample.text.matches(of: /(\w+):/).map(\.1))
    for list in allowed {
      for name in list.split(separator: ", ") {
        #expect(members.contains(name), "config.yaml has no member \(name)")
      }
    }
  }

  @Test func `the configuration of the comparison loads`() throws {
    let text = """
      listen: [{address: "127.0.0.1:19080"}]
      admin: {address: "127.0.0.1:19081"}
      workers: 1
      upstreams: {backend: {url: "http://127.0.0.1:19001"}}
      store: {kind: redis, url: "redis://127.0.0.1:19379/0", local_cache: 64MiB}
      log: {level: warning, access: false, replay_sample: 100}
      routes: [ {name: create-order, match: {methods: [POST], path: /v1/orders}, idempotency: optional, caller: {parts: ["header:Authorization"], anonymous: allow}} ]
      """
    let settings = try load(text)
    #expect(settings.listen == [.tcp(host: "127.0.0.1", port: 19080)])
    #expect(settings.admin == AdminSettings(host: "127.0.0.1", port: 19081))
    #expect(settings.workers == 1)
    #expect(settings.store.place == .redis(RedisSettings(address: .tcp(host: "127.0.0.1", port: 19379))))
    #expect(settings.store.localCacheBytes == 64 << 20)
    #expect(settings.log.level == .warning)
    #expect(!settings.log.access)
    let route = try #require(settings.routes.first)
    #expect(route.idempotency == .optional)
    #expect(route.caller == CallerPolicy(parts: [.header("authorization")], anonymous: .allow))
    #expect(route.match == RouteMatch(methods: ["POST"], path: try PathPattern(parsing: "/v1/orders")))
    let uncached = text.replacing("64MiB", with: "0B")
    #expect(try load(uncached).store.localCacheBytes == 0)
  }
}

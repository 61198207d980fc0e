import TestSupport

/// The configuration of a test: every member over sensible ones for tests, in YAML's flow style.
struct Configuration: Sendable {
  var store = StoreKind.embedded
  /// Top-level members, such as `"limits": "{body_timeout: 1s}"`.
  var top: [String: String] = [:]
  /// Members of `admin`.
  var admin: [String: String] = [:]
  /// Members of the upstream `orders`.
  var upstream: [String: String] = [:]
  /// Members of `store`.
  var storeMembers: [String: String] = [:]
  /// Members of the route `orders`, which is for `/v1/**`.
  var route: [String: String] = [:]
  /// Routes that are tried before it, each a map in flow style.
  var firstRoutes: [String] = []
  /// Whether Redis writes every change to disk.
  var isAppendOnly = false
  /// Further options of Redis.
  var redisArguments: [String] = []
  /// The part before the `@` of its URL.
  var redisUser = ""

  /// The whole document.
  func text(ports: SemelProcess.Ports, backend: Int, storePath: String, redis: RedisServer?) -> String {
    let top = [
      "listen": "[{address: '127.0.0.1:\(ports.proxy)'}]",
      "admin": Self.map(admin, over: ["address": "'127.0.0.1:\(ports.admin)'"]),
      "workers": "2",
      "log": "{level: info, format: json, access: true}",
      "upstreams": "{orders: \(Self.map(upstream, over: ["url": "'http://127.0.0.1:\(backend)'"]))}",
      "store": storeMap(path: storePath, redis: redis),
    ].merging(self.top) { _, own in own }
    let route = Self.map(
      self.route,
      over: [
        "name": "orders", "match": "{methods: [GET, HEAD, POST, PUT, PATCH, DELETE], path: '/v1/**'}",
        "caller": "{parts: ['header:Authorization']}",
        // Short, so that what a crash leaves behind is over within a test.
        "lease": "2s", "wait_timeout": "10s",
      ])
    let lines = top.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" } + ["routes:"]
    return (lines + (firstRoutes + [route]).map { "  - \($0)" }).joined(separator: "\n") + "\n"
  }

  private func storeMap(path: String, redis: RedisServer?) -> String {
    guard let redis else {
      // As long as the lease allows: rigs share a disk, on which a write now and then takes half a second.
      let timeout = route["lease"] == nil ? "1s" : "500ms"
      return Self.map(storeMembers, over: ["kind": "embedded", "path": path, "timeout": timeout])
    }
    return Self.map(
      storeMembers, over: ["kind": "redis", "url": "'redis://\(redisUser)127.0.0.1:\(redis.port)/0'"])
  }

  private static func map(_ members: [String: String], over defaults: [String: String]) -> String {
    let all = defaults.merging(members) { _, own in own }.sorted { $0.key < $1.key }
    return "{" + all.map { "\($0.key): \($0.value)" }.joined(separator: ", ") + "}"
  }
}

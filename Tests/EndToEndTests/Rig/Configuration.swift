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
      // Longer than the default, since a busy machine pauses, and some tests count connections.
      "upstreams":
        "{orders: \(Self.map(upstream, over: ["url": "'http://127.0.0.1:\(backend)'", "idle_timeout": "4s"]))}",
      "store": storeMap(path: storePath, redis: redis),
    ].merging(self.top) { _, own in own }
    let route = Self.map(
      self.route,
      over: [
        "name": "orders", "match": "{methods: [GET, HEAD, POST, PUT, PATCH, DELETE], path: '/v1/**'}",
        "caller": "{parts: ['header:Authorization']}",
        // Short, so that what a crash leaves behind is over within a test, and longer than a busy machine pauses.
        "lease": "6s", "wait_timeout": "15s",
      ])
    let lines = top.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" } + ["routes:"]
    return (lines + (firstRoutes + [route]).map { "  - \($0)" }).joined(separator: "\n") + "\n"
  }

  private func storeMap(path: String, redis: RedisServer?) -> String {
    // As long as the lease allows, up to what a busy machine pauses: rigs share its disk.
    let lease = route["lease"].flatMap { Int($0.dropLast()) } ?? 6
    var members = ["timeout": "\(min(lease * 500, 3000))ms"]
    if let redis {
      members["kind"] = "redis"
      members["url"] = "'redis://\(redisUser)127.0.0.1:\(redis.port)/0'"
    } else {
      members["kind"] = "embedded"
      members["path"] = path
    }
    return Self.map(storeMembers, over: members)
  }

  private static func map(_ members: [String: String], over defaults: [String: String]) -> String {
    let all = defaults.merging(members) { _, own in own }.sorted { $0.key < $1.key }
    return "{" + all.map { "\($0.key): \($0.value)" }.joined(separator: ", ") + "}"
  }
}

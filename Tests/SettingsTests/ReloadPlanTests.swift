import Idempotency
import Settings
import TLS
import Testing
import Wire

/// The changes that a reload takes, and those that it refuses.
struct ReloadPlanTests {
  private static let start = """
    listen: [{address: "127.0.0.1:8080"}]
    admin: {address: "127.0.0.1:8081"}
    workers: 2
    store: {kind: redis, url: "redis://127.0.0.1:6379/0"}
    upstreams:
      a: {url: "http://127.0.0.1:9000"}
      b: {url: "http://127.0.0.1:9001"}
    defaults: {upstream: a}
    log: {level: info}
    routes:
      - name: orders
        match: {path: /v1/orders}
        caller: {parts: ["header:Authorization"]}
      - name: payments
        match: {path: /v1/payments}
        caller: {parts: ["header:Authorization"]}
        endpoint: route
      - name: open
        idempotency: off

    """

  /// The plan for a change of the text.
  private func plan(_ old: String, _ new: String, and more: String = "") throws -> ReloadPlan {
    try #require(Self.start.contains(old))
    return reloadVerdict(
      from: try load(Self.start), to: try load(Self.start.replacing(old, with: new) + more))
  }

  /// The line of a file by which the last reason accepts a change.
  private static func acceptance(in reasons: [ReloadPlan.Reason]) throws -> String {
    let last = try #require(reasons.last)
    let digest = try #require(last.message.split(separator: " ").first)
    return "\(last.member): \(digest)\n"
  }

  @Test func `a refused reload has one reason a route, and lost protection comes first`() throws {
    let changed = Self.start.replacing("path: /v1/payments", with: "path: /v1/other")
      .replacing(
        "caller: {parts: [\"header:Authorization\"]}", with: "caller: {parts: [address]}\n    upstream: b")
    guard case .refuse(let reasons) = reloadVerdict(from: try load(Self.start), to: try load(changed)) else {
      Issue.record("the reload is taken")
      return
    }
    #expect(reasons.count == 4, "\(reasons)")
    #expect(reasons[0].message.contains("payments before (any method /v1/payments)"), "\(reasons)")
    let both = "orders before (any method /v1/orders), as upstream is"
    #expect(reasons[1].message.contains(both), "\(reasons)")
    #expect(reasons.suffix(2).map(\.member) == ["store.namespace", "allow_identity_change"])
  }

  @Test(arguments: [
    ("info", "debug"), ("{level: info}", "{level: info, access: false}"),
    ("9000", "9005"), ("workers: 2", "workers: 2\nlimits: {max_in_flight: 5}"),
    ("workers: 2", "workers: 2\nunmatched_keys: refuse"), ("workers: 2", "workers: 2\nunderscores: pass"),
    ("workers: 2", "workers: 2\npolicy_document: off"),
    ("workers: 2", "workers: 2\nshutdown_grace: 60s"), ("workers: 2", "workers: 2\ndrain_delay: 1s"),
    ("endpoint: route", "endpoint: route\n    retention: 2h\n    remember: 3h"),
    ("\"http://127.0.0.1:9001\"", "\"http://127.0.0.1:9001\", max_connections: 9"),
    // A new route before all others, one at the end, a route less, and one that protects what passed.
    ("- name: orders", "- {name: new, match: {path: /new}, idempotency: off}\n  - name: orders"),
    ("idempotency: off\n", "idempotency: off\n    match: {path: /open}\n  - {name: new, idempotency: off}\n"),
    ("  - name: open\n    idempotency: off\n", ""),
    ("idempotency: off", "match: {path: /open}\n    caller: {parts: [address]}"),
    // Another name alone is the same identity where records go by the path.
    ("name: orders", "name: purchases"),
    // Sources behind the others, and who may come without a key.
    ("endpoint: route", "endpoint: route\n    key: {from: [\"header:Idempotency-Key\", \"query:key\"]}"),
    (
      "endpoint: route",
      "endpoint: route\n    key: {from: [\"header:Idempotency-Key\", [\"query:a\", \"query:b\"], payload]}"
    ),
    ("endpoint: route", "endpoint: route\n    idempotency: optional"),
    // An earlier route that takes requests of a later one, and identifies them likewise.
    (
      "- name: orders",
      """
      - {name: fast, match: {methods: [POST], path: /v1/orders}, idempotency: optional,
           caller: {parts: ["header:authorization"]}, endpoint: path, response_timeout: 1s, key: {max_length: 9}}
        - {name: p, match: {path: /v1/unused}, idempotency: off}
        - name: orders
      """
    ),
  ]) func `a member that may change live is adopted`(old: String, new: String) throws {
    #expect(try plan(old, new) == .apply)
  }

  @Test(arguments: [
    ("127.0.0.1:8080", "127.0.0.1:8088", "listen[0].address"),
    ("\"127.0.0.1:8080\"", "\"127.0.0.1:8080\", proxy_protocol: true", "listen[0].proxy_protocol"),
    (
      "{address: \"127.0.0.1:8080\"}", "{address: \"127.0.0.1:8080\"}, {address: \"127.0.0.1:8090\"}",
      "listen"
    ),
    ("127.0.0.1:8081", "127.0.0.1:8089", "admin.address"),
    ("\"127.0.0.1:8081\"", "\"127.0.0.1:8081\", hosts: [semel.internal]", "admin.hosts"),
    ("admin: {address: \"127.0.0.1:8081\"}\n", "", "admin"), ("workers: 2", "workers: 4", "workers"),
    ("kind: redis, url: \"redis://127.0.0.1:6379/0\"", "kind: embedded", "store.kind"),
    ("6379/0", "6379/1", "store.url"), ("6379/0\"", "6379/0\", timeout: 1s", "store.timeout"),
    ("6379/0\"", "6379/0\", namespace: other", "store.namespace"),
    ("6379/0\"", "6379/0\", require_durable: true", "store.require_durable"),
    ("6379/0\"", "6379/0\", local_cache: 1MiB", "store.local_cache"),
    ("6379/0\"", "6379/0\", compression: off", "store.compression"),
    ("6379/0\"", "6379/0\", replicas: 1", "store.replicas"),
    ("6379/0\"", "6379/0\", durable: waitaof", "store.durable"),
    ("level: info", "format: text", "log.format"),
  ]) func `a member that cannot change live is refused by name`(old: String, new: String, member: String)
    throws
  {
    let message = "cannot change while Semel runs; restart it, or write the old value"
    #expect(try plan(old, new) == .refuse([ReloadPlan.Reason(member, message)]))
  }

  @Test(arguments: [
    ("name: orders", "name: orders\n    upstream: b", "routes[0].upstream"),
    (
      "/v1/orders}\n    caller: {parts: [\"header:Authorization\"]}",
      "/v1/orders}\n    caller: {parts: [address]}", "routes[0].caller"
    ),
    (
      "/v1/orders}\n    caller: {parts: [\"header:Authorization\"]}",
      "/v1/orders}\n    caller: {parts: [\"header:Authorization\", address]}", "routes[0].caller"
    ),
    ("endpoint: route", "endpoint: path", "routes[1].endpoint"),
    ("endpoint: route", "endpoint: {scope: route, host: any}", "routes[1].endpoint"),
    ("name: payments", "name: charges", "routes[1].name"),
    ("name: orders", "name: purchases\n    upstream: b", "routes[0].upstream"),
    ("    endpoint: route\n", "    endpoint: route\n    key: {from: [\"header:X-Key\"]}\n", "routes[1].key"),
    (
      "endpoint: route", "endpoint: route\n    key: {from: [\"query:k\", \"header:Idempotency-Key\"]}",
      "routes[1].key"
    ),
    ("endpoint: route", "endpoint: route\n    idempotency: off", "routes[1].idempotency"),
    // Protected, with the paths with a format suffix that others had.
    ("idempotency: off", "caller: {parts: [address]}", "routes[2].caller"),
    // Moved, widened and narrowed.
    ("/v1/orders", "/v2/orders", "routes[0].match"),
    ("{path: /v1/orders}", "{path: \"/v1/orders/**\"}", "routes[0].match"),
    ("{path: /v1/orders}", "{path: /v1/orders, methods: [POST]}", "routes[0].match"),
    ("{path: /v1/orders}", "{path: /v1/orders, host: a.example}", "routes[0].match"),
    // Shadowed, by a route for all that they take and by one for a part.
    (
      "- name: orders",
      "- {name: part, match: {methods: [PUT], host: a.b}, idempotency: off}\n  - name: orders",
      "routes[0].match"
    ),
    (
      "- name: orders",
      "- {name: any, match: {methods: [POST], path: \"/{v}/orders\"}, caller: {parts: [address]}}\n  - name: orders",
      "routes[0].caller"
    ),
  ]) func `another identity needs allow_identity_change`(old: String, new: String, member: String) throws {
    guard case .refuse(let reasons) = try plan(old, new) else {
      Issue.record("taken")
      return
    }
    #expect(Set(reasons.dropLast(2).map(\.member)) == [member], "\(reasons)")
    let acceptance = try Self.acceptance(in: reasons)
    #expect(try plan(old, new, and: acceptance) == .apply)
    #expect(try plan("9000", "9005", and: acceptance) == .apply)
  }

  @Test func `a recipe is an identity where the payload is the key`() throws {
    func members(_ old: String, _ new: String) throws -> [String] {
      let plan = reloadVerdict(from: try load(route(old)), to: try load(route(new)))
      guard case .refuse(let reasons) = plan else { return [] }
      return reasons.dropLast(2).map(\.member)
    }
    let payload = "key: {from: [payload]}"
    #expect(try members(payload, payload + ", fingerprint: {body: raw}") == ["routes[0].fingerprint"])
    #expect(try members("retention: 1h", "fingerprint: {body: raw}") == [])
    let parts = "key: {from: [[\"query:a\", \"query:b\"]]}"
    #expect(try members(parts, parts.replacing("query:b", with: "query:c")) == ["routes[0].key"])
    #expect(try members(parts, payload) == ["routes[0].key"])
  }

  @Test func `all members that cannot change are reported at once, and first`() throws {
    var changed = Self.start
    for (old, new) in [
      ("workers: 2", "workers: 3"), ("8080", "8090"), ("6379", "6380"), ("endpoint: route", "endpoint: path"),
    ] {
      changed = changed.replacing(old, with: new)
    }
    guard case .refuse(let reasons) = ReloadPlan(from: try load(Self.start), to: try load(changed)) else {
      Issue.record("taken")
      return
    }
    #expect(
      reasons.map(\.member) == [
        "listen[0].address", "workers", "store.url",
      ])
    #expect(reasons.map(\.description).allSatisfy { $0.contains(": ") })
  }

  @Test func `each changed member of a listener is named`() throws {
    var old = try load(Self.start)
    let files = TLSFiles(certificate: "c", key: "k", clientCA: "a", clientCAName: "n")
    old.listen = [.unix(path: "/s"), .tcp(host: "h", port: 1), .tcp(host: "h", port: 2)]
    old.listen[1].tls = files
    var new = old
    new.listen[0].mode = 0o600
    new.listen[1].tls = TLSFiles(certificate: "d", key: "l")
    new.listen[2].tls = files
    new.admin?.tokenFile = "/t"
    guard case .refuse(let reasons) = ReloadPlan(from: old, to: new) else {
      Issue.record("taken")
      return
    }
    #expect(
      reasons.map(\.member) == [
        "listen[0].mode", "listen[1].tls.certificate", "listen[1].tls.key", "listen[1].tls.client_ca",
        "listen[1].tls.client_ca_name", "listen[2].tls", "admin.token_file",
      ])
  }

  @Test(arguments: [(20, 20, "r19"), (21, 21, "routes: … and 1 more such reasons"), (300, 21, "280 more")])
  func `of the reasons about many routes the first ones are listed, and the others counted`(
    count: Int, listed: Int, last: String
  ) throws {
    let routes = (0..<count).map { "  - {name: r\($0), match: {path: /r\($0)}}\n" }.joined()
    let head = upstream + "defaults: {caller: {parts: [address]}}\n"
    let old = try load(head + "routes:\n" + routes)
    let new = try load(head + "routes: []\n")
    guard case .refuse(let reasons) = reloadVerdict(from: old, to: new) else {
      Issue.record("taken")
      return
    }
    #expect(reasons.count == 2 + listed)
    #expect(reasons.dropLast(2).last?.description.contains(last) == true, "\(reasons)")
  }

  @Test func `a route is shadowed only by an allowed change, and put into force at any time`() throws {
    guard case .refuse(let reasons) = try plan("- name: orders", "- shadow: true\n    name: orders") else {
      Issue.record("taken")
      return
    }
    #expect(reasons.map(\.member) == ["routes[0].shadow", "store.namespace", "allow_identity_change"])
    let shadowed = try load(Self.start.replacing("- name: orders", with: "- shadow: true\n    name: orders"))
    #expect(reloadVerdict(from: shadowed, to: try load(Self.start)) == .apply)
    #expect(shadowed.warnings.contains { $0.path == "routes[0].shadow" })
    #expect(KnownConfiguration(shadowed) != KnownConfiguration(try load(Self.start)))
  }

  @Test func `the order of trusted proxies decides nothing, another one does`() throws {
    let route = "routes: [{name: r, caller: {parts: [address]}}]\n"
    func plan(_ proxies: String) throws -> ReloadPlan {
      let old = try load(upstream + route + "trusted_proxies: [10.0.0.0/8, unix, 192.0.2.1]\n")
      return reloadVerdict(from: old, to: try load(upstream + route + "trusted_proxies: \(proxies)\n"))
    }
    if case .refuse(let reasons) = try plan("[192.0.2.1, 10.0.0.0/8, unix]") {
      Issue.record("refused: \(reasons)")
    }
    for other in ["[10.0.0.0/8, unix, 192.0.2.2]", "[10.0.0.0/8, 192.0.2.1]", "[unix, 192.0.2.1]"] {
      guard case .refuse(let reasons) = try plan(other) else {
        Issue.record("taken: \(other)")
        continue
      }
      #expect(reasons.map(\.member) == ["trusted_proxies", "store.namespace", "allow_identity_change"])
    }
  }

  @Test func `allow_identity_change is no change by itself`() throws {
    #expect(try plan("workers: 2", "workers: 2\nallow_identity_change: abcdefghij") == .apply)
    #expect(try plan("workers: 2", "workers: 2\nallow_identity_change: false") == .apply)
  }

  @Test func `a digest accepts one change and no later one`() throws {
    let first = "/v1/orders}\n    caller: {parts: [\"header:Authorization\"]}"
    let second = first.replacing("\"header:Authorization\"", with: "address")
    guard case .refuse(let reasons) = try plan(first, second) else {
      Issue.record("taken")
      return
    }
    let acceptance = try Self.acceptance(in: reasons)
    #expect(try plan(first, second, and: acceptance) == .apply)
    for other in [second.replacing("orders", with: "bought"), second + "\n    upstream: b"] {
      #expect(try plan(first, other, and: acceptance) != .apply, "\(other)")
    }
  }

  @Test(arguments: ["true", "yes", "abc", "ABCDEFGHIJ", "abcdefghiz"])
  func `allow_identity_change without a digest is refused with the right form`(value: String) {
    let found = issues(route("retention: 1h") + "allow_identity_change: \(value)\n")
    #expect(found.count == 1 && found[0].contains("such as allow_identity_change: abcdefghij"), "\(found)")
  }

  @Test func `the message names both routes and their requests`() throws {
    let shadow =
      "- {name: any, match: {methods: [POST], path: \"/{v}/orders\"}, idempotency: off}\n  - name: orders"
    guard case .refuse(let reasons) = try plan("- name: orders", shadow) else {
      Issue.record("taken")
      return
    }
    #expect(
      reasons.map(\.description) == [
        "routes[0].match: may take requests that orders before (any method /v1/orders) protected, and leaves them "
          + "unprotected, so that a retry would run again; write it behind",
        "store.namespace: has one configuration; if this is another service, give it a namespace of its own",
        try Self.acceptance(in: reasons).dropLast()
          + " in the file accepts this very change: records of before are lost then, and their retries run again",
      ])
  }
}

import Foundation
import Glibc
import TestSupport
import Testing

/// `semel explain`: what a request meets, offline, by the proxy's own code.
struct ExplainTests {
  private static let configuration = """
    listen: [{address: 127.0.0.1:8080}]
    upstreams: {orders: {url: "http://127.0.0.1:9000"}}
    store: {kind: embedded, path: records.db}
    routes:
      - name: reports
        match: {methods: [GET], path: /v1/reports, host: reports.example, headers: {X-Version: "2"}}
        caller: {parts: [address]}
      - name: open
        match: {path: '/open/**'}
        idempotency: off
      - name: create-order
        match: {methods: [POST], path: '/v1/orders/{shop}'}
        key: {from: ['header:Idempotency-Key', 'json:/id']}
        caller: {parts: ['header:Authorization', 'query:device'], anonymous: allow}
        fingerprint: {ignore: [/sent_at, /gone], headers: [X-Shop]}
        outcomes: {retry: [500]}
        retention: 36h
        remember: 7d
      - name: bulk
        match: {path: /v1/bulk}
        batch: {items: /orders, key: /id, results: /results}
        caller: {shared: true}
      - name: rest
        match: {path: '/v1/**'}
        idempotency: optional
        caller: {shared: true}
    """

  private func explain(
    _ arguments: [String], _ text: String = Self.configuration, ends exit: ManagedProcess.Exit = .code(0)
  ) async throws -> String {
    let directory = TemporaryDirectory()
    try text.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
    let process = try ManagedProcess(
      [SemelProcess.binary, "explain", directory.file("semel.yaml")] + arguments)
    let end = try await process.exit()
    #expect(end == exit, "\(process.output)\(process.errors)")
    return process.output
  }

  private static let alice = ["-H", "Authorization: Bearer secret-of-alice"]
  private static let keyed = alice + ["-H", "Idempotency-Key: k1"]
  private static let json = ["-H", "Content-Type: application/json"]

  @Test func `the path of the policy goes by the routes where it is off`() async throws {
    let text = """
      upstreams: {orders: {url: "http://127.0.0.1:9000"}}
      routes:
        - {name: known, match: {methods: [GET], path: '/.well-known/**'}, caller: {parts: ['header:Authorization']}}

      """
    let policy = ["GET", "/.well-known/idempotency"] + Self.keyed
    let outcome = ["GET", "/.well-known/idempotency/outcome?method=POST&path=/v1/orders"] + Self.keyed
    #expect(try await explain(policy, text).contains("Semel itself responds: its policy"))
    let off = text + "policy_document: off\n"
    let routed = try await explain(policy, off)
    #expect(routed.contains("known  takes it") && routed.contains("record"), "\(routed)")
    #expect(!routed.contains("Semel itself responds"), "\(routed)")
    #expect(
      try await explain(outcome, off).contains("Semel itself responds: the outcome of an earlier request"))
  }

  @Test func `a head above the limits is refused as the proxy does`() async throws {
    let text = Self.configuration
    let request = ["POST", "/v1/orders/7"] + Self.keyed
    #expect(
      try await explain(request + ["-H", "X-Long: " + String(repeating: "x", count: 16_000)], text).contains(
        "record"))
    let refused = try await explain(
      request + ["-H", "X-Long: " + String(repeating: "x", count: 16_400)], text, ends: .code(1))
    #expect(refused.contains("431 header_too_large"), "\(refused)")
  }

  @Test func `behind a trusted proxy the client is the one that it states`() async throws {
    let text = "trusted_proxies: [10.0.0.0/8]\n" + Self.configuration
    let request = ["GET", "http://reports.example/v1/reports", "-H", "X-Version: 2"] + Self.keyed
    let stated = request + ["-H", "X-Forwarded-For: 198.51.100.9, 192.0.2.7"]
    let direct = try await explain(request + ["--address", "192.0.2.7"], text)
    #expect(direct.contains("record"))
    #expect(try await explain(request + ["--address", "::ffff:192.0.2.7"], text) == direct)
    #expect(try await explain(stated + ["--address", "10.0.0.1"], text) == direct)
    #expect(try await explain(stated + ["--address", "203.0.113.1"], text) != direct)
  }

  /// A request from a trusted proxy that states no client has no address, as the proxy has it.
  @Test(arguments: [[], ["X-Forwarded-For: unknown"], ["X-Forwarded-For: "], ["X-Forwarded-Proto: https"]])
  func `a trusted proxy that states no client leaves the caller unknown`(fields: [String]) async throws {
    let text = "trusted_proxies: [127.0.0.0/8]\n" + Self.configuration
    let request = ["GET", "http://reports.example/v1/reports", "-H", "X-Version: 2"] + Self.keyed
    let unstated = request + fields.flatMap { ["-H", $0] }
    let refused = try await explain(unstated, text, ends: .code(1))
    #expect(
      refused.contains("address: missing, since a trusted proxy states none in X-Forwarded-For\n"),
      "\(refused)")
    #expect(refused.contains("refused      401 caller_unknown: "), "\(refused)")
    let anonymous = text.replacing("{parts: [address]}", with: "{parts: [address], anonymous: allow}")
    let accepted = try await explain(unstated, anonymous)
    #expect(accepted.contains("which counts as an anonymous caller\n"), "\(accepted)")
    // From any other peer the fields say nothing.
    let direct = try await explain(unstated + ["--address", "192.0.2.7"], text)
    #expect(direct.contains("address: present, sha256 "), "\(direct)")
  }

  private static let filler = String(repeating: "x", count: 16_400)

  /// Requests of callers that are unknown, each to a path with a body that is at fault as well.
  static let unknownCallers: [(path: String, fields: [String], body: String)] = [
    ("/v1/by-address", [], #"{"tenant":"t"}"#), ("/v1/by-address", [], #"{"id":"a,b","id":"c"}"#),
    ("/v1/by-address", [], "{"), ("/v1/by-address", ["X-Forwarded-For: a"], #"{"tenant":"t"}"#),
    ("/v1/by-address", [], #"{"id":"a","x":"\#(filler)"}"#),
    ("/v1/by-body", [], "{"), ("/v1/by-body", [], "{}"), ("/v1/by-body", [], ""),
    ("/v1/by-body", ["Content-Encoding: gzip"], #"{"who":"a"}"#), ("/v1/by-body", [], #"{"who":1.5}"#),
    ("/v1/by-body", [], #"{"who":"a","who":"b","id":5}"#), ("/v1/bulk", [], "{"),
    ("/v1/bulk", [], #"{"orders":[]}"#),
  ]

  @Test(arguments: ExplainTests.unknownCallers)
  func `where caller and key are both at fault, the caller is named, as the proxy does`(
    path: String, fields: [String], body: String
  ) async throws {
    let text = """
      listen: [{address: 127.0.0.1:8080}]
      trusted_proxies: [127.0.0.0/8]
      upstreams: {orders: {url: "http://127.0.0.1:9"}}
      store: {kind: embedded, path: records.db}
      defaults: {max_request_body: 1KiB}
      routes:
        - name: by-address
          match: {path: /v1/by-address}
          key: {from: ['json:/id']}
          caller: {parts: [address]}
        - name: by-body
          match: {path: /v1/by-body}
          key: {from: ['json:/id']}
          caller: {parts: ['json:/who']}
        - name: bulk
          match: {path: /v1/bulk}
          batch: {items: /orders, key: /id, results: /results}
          caller: {parts: ['json:/who']}
      """
    let refused = try await explain(
      ["POST", path, "-d", body] + Self.json + fields.flatMap { ["-H", $0] }, text, ends: .code(1))
    #expect(refused.contains("refused      401 caller_unknown: "), "\(refused)")
  }

  private static func route(_ members: String) -> String {
    """
    listen: [{address: 127.0.0.1:8080}]
    upstreams: {orders: {url: "http://127.0.0.1:9000"}}
    store: {kind: embedded, path: records.db}
    routes: [{name: only, caller: {shared: true}, \(members)}]
    """
  }

  @Test func `a route for mutations is explained by the operation that the body selects`() async throws {
    let text = Self.route("match: {path: /graphql, graphql: mutation}")
    let request = ["POST", "/graphql"] + Self.json
    let query = try await explain(request + ["-d", #"{"query":"{a}"}"#], text)
    #expect(query.contains("no; graphql: it takes mutations, and the body selects none"), "\(query)")
    #expect(query.contains("\npassed       to orders"), "\(query)")
    let mutation = request + ["-d", #"{"query":"mutation {a}"}"#]
    #expect(try await explain(mutation + Self.keyed, text).contains("only  takes it\n"))
    #expect(try await explain(mutation, text, ends: .code(1)).contains("400 key_missing"))
  }

  @Test func `a body too large to be read for its operation is refused as the proxy does`() async throws {
    let members = "match: {path: /graphql, graphql: mutation}, max_request_body: 1KiB"
    let filler = String(repeating: "x", count: 16_400)
    let request = ["POST", "/graphql", "-d", #"{"query":"{a}","x":"\#(filler)"}"#] + Self.json
    for more in [[], Self.keyed] {
      let refused = try await explain(request + more, Self.route(members), ends: .code(1))
      #expect(refused.contains("refused      413 request_too_large: "), "\(refused)")
    }
    // A shadowed route refuses nothing.
    let passed = try await explain(request, Self.route(members + ", shadow: true"))
    #expect(passed.contains("\nshadow       forwarded as an unprotected request"), "\(passed)")
  }

  @Test func `a shadowed route is explained as what it would do`() async throws {
    let text = Self.route("match: {path: /watched}, shadow: true")
    let unkeyed = try await explain(["POST", "/watched"], text)
    #expect(unkeyed.contains("\nshadow       forwarded as an unprotected request"), "\(unkeyed)")
    #expect(unkeyed.contains("\nwould be     refused 400 key_missing"), "\(unkeyed)")
    let keyed = try await explain(["POST", "/watched"] + Self.keyed, text)
    #expect(keyed.contains("the status of the response"), "\(keyed)")
    let enforced = try await explain(
      ["POST", "/watched"] + Self.keyed, Self.route("match: {path: /watched}"))
    let record = { (text: String) in text.split(separator: "\n").first { $0.hasPrefix("record ") } }
    #expect(record(keyed) != nil && record(keyed) != record(enforced))
  }

  @Test func `a batch is explained item by item`() async throws {
    let items = #"[{"id":"a","n":1},{"id":"b"},{"n":1,"id":"a"},{"id":"b","n":2}]"#
    let output = try await explain(
      ["POST", "/v1/bulk"] + Self.json + ["-d", #"{"orders":\#(items)}"#])
    for expected in [
      "batch        4 items of at most 100, 2 records", "item 0: key a, ", "item 1: key b, ",
      ", with item 0\n", "item 3: refused, since an earlier item has its key and another payload",
      "(endpoint: path, so a key counts for its path alone)",
    ] {
      #expect(output.contains(expected), "\(expected) in\n\(output)")
    }
    // The backend gets none.
    #expect(!output.contains("Idempotency-Request-Id"), "\(output)")
    let empty = try await explain(
      ["POST", "/v1/bulk"] + Self.json + ["-d", #"{"orders":[]}"#], ends: .code(1))
    #expect(empty.contains("400 bad_request"), "\(empty)")
  }

  @Test func `a protected request is explained from its route to its record`() async throws {
    let output = try await explain(
      ["POST", "https://api.example/v1/orders/7?b=2&a=1"] + Self.keyed + Self.json
        + ["-d", #"{"amount":1,"sent_at":"now","item":"book"}"#])
    for expected in [
      "request      POST /v1/orders/7?b=2&a=1, host api.example",
      "no; method: it takes GET; path: it takes /v1/reports; host: it takes reports.example; headers: it wants x-version",
      "open          no; path: it takes /open/**", "create-order  takes it",
      "rest          fits, too, but create-order comes first",
      "header:idempotency-key: k1", "json:/id: not looked at", "header:authorization: present, sha256 ",
      "query:device: missing, which counts as an anonymous caller",
      "recipe 2;auto;h=x-shop;i=/sent_at,/gone", "media type application/json", "header x-shop",
      "the body as JSON", "members that count: amount, item", "left out: /sent_at\n",
      "left out: /gone (not in this body)", "in the file records.db",
      "without the fields ratelimit*, x-ratelimit*, x-rate-limit*", "replayed for 36h, remembered for 7d",
      "retry (the next delivery runs): 307-308, 401, 403, 407-408, 412, 419, 421, 423, 425, 428-429, 500, 503, 521",
      "unknown: 502, 504, 520, 524, 527", "on_unknown: hold", "orders, 127.0.0.1:9000",
    ] {
      #expect(output.contains(expected), "\(expected) in \(output)")
    }
    #expect(!output.contains("secret-of-alice"))
  }

  @Test(arguments: [("auto", true), ("off", false)])
  func `a response that is stored compressed is said to be`(_ compression: String, isSo: Bool) async throws {
    let text = Self.configuration.replacing("records.db", with: "r.db, compression: \(compression)")
    let output = try await explain(["POST", "/v1/orders/7"] + Self.keyed, text)
    #expect(output.contains("bytes, compressed where that saves room, without cookies") == isSo, "\(output)")
  }

  /// Requests to `/v1/orders/7` or another path that are refused, and their problems.
  static let refusals: [([String], String)] = [
    (["POST", "/v1/orders/7", "-H", "Authorization: a", "-H", "Idempotency-Key: a,b"], "400 key_invalid"),
    (["POST", "/v1/orders/7", "-H", "Authorization: a"], "400 key_missing"),
    (["POST", "/v1/orders/a%2Fb", "-H", "Authorization: a", "-H", "Idempotency-Key: a"], "400 bad_request"),
    (
      ["POST", "/v1/orders/7", "-H", "Idempotency-Key: a", "-H", "Upgrade: websocket"], "501 not_implemented"
    ),
    (
      ["POST", "/v1/orders/7", "-H", "Idempotency-Key: a", "-H", "Authorization: Digest a"],
      "401 caller_unknown"
    ),
    (["post", "/v1/orders/7", "-H", "Idempotency-Key: a"], "400 bad_request"),
    (["CONNECT", "orders.example:443"], "501 not_implemented"),
  ]

  @Test(arguments: ExplainTests.refusals)
  func `a refusal is named by its code`(arguments: [String], problem: String) async throws {
    let output = try await explain(arguments, ends: .code(1))
    #expect(output.contains("refused      \(problem): "), "\(output)")
  }

  @Test func `a request without protection is explained`() async throws {
    let open = try await explain(["POST", "/open/1"] + Self.keyed)
    #expect(open.contains("open          takes it, and does not protect it"), "\(open)")
    #expect(open.contains("ignored, since no route protects the request"), "\(open)")
    #expect(open.contains("passed       to orders, 127.0.0.1:9000"), "\(open)")
    let unkeyed = try await explain(["POST", "/v1/other"])
    #expect(unkeyed.contains("it has no key (idempotency: optional)"), "\(unkeyed)")
    let refusing = "unmatched_keys: refuse\n" + Self.configuration
    let refused = try await explain(["POST", "/open/1"] + Self.keyed, refusing, ends: .code(1))
    #expect(refused.contains("400 key_not_supported"), "\(refused)")
  }

  @Test func `a preflight goes where the request that it announces goes`() async throws {
    let text = """
      listen: [{address: 127.0.0.1:8080}]
      upstreams: {orders: {url: "http://127.0.0.1:9000"}, other: {url: "http://127.0.0.1:9001"}}
      store: {kind: embedded, path: records.db}
      routes:
        - name: create-order
          match: {methods: [POST], path: /v1/orders}
          upstream: orders
          caller: {shared: true}
          cors: {origins: ["https://shop.example"]}
      """
    let preflight = [
      "OPTIONS", "/v1/orders", "-H", "Origin: https://shop.example", "-H",
      "Access-Control-Request-Method: POST", "-H", "Access-Control-Request-Headers: idempotency-key",
    ]
    let taken = try await explain(preflight, text)
    for line in [
      "preflight    it announces POST, which create-order takes", "passed       to orders, 127.0.0.1:9000",
      "for pages of https://shop.example",
    ] {
      #expect(taken.contains(line), "\(line) in \(taken)")
    }
    let other = preflight.map { $0.replacing("POST", with: "PUT") }
    let untaken = try await explain(other, text, ends: .code(1))
    #expect(untaken.contains("announces PUT, which no route takes"), "\(untaken)")
    #expect(untaken.contains("404 no_route"), "\(untaken)")
    // A request with a key is no preflight.
    let keyed = try await explain(preflight + Self.keyed, text, ends: .code(1))
    #expect(keyed.contains("404 no_route") && !keyed.contains("preflight"), "\(keyed)")
  }

  @Test func `a key in the body is found, and a body from a file is read`() async throws {
    let directory = TemporaryDirectory()
    try #"{"id":"from-the-body"}"#.write(toFile: directory.file("b"), atomically: true, encoding: .utf8)
    let output = try await explain(
      ["POST", "/v1/orders/7", "-d", "@" + directory.file("b")] + Self.alice + Self.json)
    #expect(output.contains("header:idempotency-key: none"), "\(output)")
    #expect(output.contains("json:/id: from-the-body"), "\(output)")
  }

  @Test func `a body from a named pipe is read once`() async throws {
    let directory = TemporaryDirectory()
    let pipe = directory.file("pipe")
    #expect(mkfifo(pipe, 0o600) == 0)
    let writer = try ManagedProcess(["sh", "-c", "printf %s '{\"id\":\"from-the-pipe\"}' > \"$0\"", pipe])
    let output = try await explain(["POST", "/v1/orders/7", "-d", "@" + pipe] + Self.alice + Self.json)
    #expect(output.contains("json:/id: from-the-pipe"), "\(output)")
    #expect(try await writer.exit() == .code(0))
    withExtendedLifetime(directory) {}
  }

  @Test func `a variable may be missing that only connections need`() async throws {
    func route(_ path: String) -> String {
      let header = "Authorization: 'Bearer ${SEMEL_TEST_MISSING}'"
      return Self.route(
        "match: {path: '\(path)'}, on_unknown: reconcile, reconcile: {path: '/o/{request_id}', headers: {\(header)}}"
      )
    }
    let request = ["POST", "/v1/orders"] + Self.keyed
    #expect(try await explain(request, route("/v1/orders")).contains("\nrecord       "))
    _ = try await explain(request, route("/${SEMEL_TEST_MISSING}"), ends: .code(78))
  }

  @Test func `a request without a host has the record that a command without one names`() async throws {
    try await Rig.run { rig in
      struct Shown: Decodable { let id: String }
      let directory = TemporaryDirectory()
      let file = directory.file("semel.yaml")
      try rig.writeConfiguration(to: file)
      let fields = ["-H", "Authorization: Bearer alice", "-H", "Idempotency-Key: k"]
      let page = try await rig.command(["explain", file, "POST", "/v1/orders"] + fields).output
      #expect(
        page.contains("request      POST /v1/orders, host none\n             (one to an address; "), "\(page)"
      )
      let selection = Rig.selection("k").filter { !["--host", "orders.example"].contains($0) }
      let shown = try await rig.key(["show"] + selection).output
      let id = try JSONDecoder().decode(Shown.self, from: Data(shown.utf8)).id
      #expect(page.contains("\nrecord       \(id)\n"), "\(page)\(shown)")
      let named = try await rig.command(
        ["explain", file, "POST", "/v1/orders", "-H", "Host: orders.example"] + fields
      ).output
      #expect(named.contains(", host orders.example\nroutes ") && !named.contains(id), "\(named)")
      withExtendedLifetime(directory) {}
    }
  }

  @Test func `a bad configuration ends with 78`() async throws {
    #expect(try await explain(["POST", "/"], "listen: 5\n", ends: .code(78)).isEmpty)
  }

  @Test(arguments: [[:], ["endpoint": "route"]])
  func `the id is the one that the proxy makes`(route: [String: String]) async throws {
    try await Rig.run(Configuration(route: route)) { rig in
      let directory = TemporaryDirectory()
      try rig.writeConfiguration(to: directory.file("semel.yaml"))
      expectExecuted(try await rig.order("k", path: "/v1//orders/?x=%41"))
      let id = try #require(rig.backend.requests[0].requestID)
      let explained = try await rig.command([
        "explain", "--config", directory.file("semel.yaml"), "POST",
        "http://orders.example/v1//orders/?x=%41",
        "-H", "Authorization: Bearer alice", "-H", "Idempotency-Key: \"k\"",
        "-H", "Content-Type: application/json", "-d", #"{"amount":1999}"#,
      ]).output
      #expect(explained.contains("record       \(id)\n"), "\(explained)")
    }
  }
}

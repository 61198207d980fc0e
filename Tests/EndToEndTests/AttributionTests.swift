import Foundation
import TestSupport
import Testing

/// The way from a log line to a record and from a key to its records, and the causes of unknown outcomes.
struct AttributionTests {
  /// The warnings of lost outcomes so far, as soon as there are so many.
  private func losses(
    _ rig: Rig, _ count: Int, within span: Duration = .seconds(20)
  ) async throws -> [[String: String]] {
    try await rig.semel.entries("the outcome of a request was lost", atLeast: count, within: span)
  }

  @Test(arguments: StoreKind.allCases)
  func `each log line of a keyed request names record, route and path template`(store: StoreKind) async throws
  {
    // With one, the entries stand in the order of the responses.
    try await Rig.run(Configuration(store: store, top: ["workers": "1"])) { rig in
      expectExecuted(try await rig.order("a"))
      expectReplayed(try await rig.order("a"), 201)
      expectRefused(try await rig.order("a", body: "{}"), 409, "payload_mismatch", retryable: false)
      _ = try await rig.order(nil, path: "/open")
      let entries = try await rig.semel.requests(atLeast: 4)
      let id = try #require(rig.backend.requests[0].requestID)
      #expect(entries.prefix(3).allSatisfy { $0["record"] == id && $0["route"] == "orders" }, "\(entries)")
      #expect(entries.prefix(3).allSatisfy { $0["path"] == "/v1/**" }, "\(entries)")
      #expect(entries[3]["record"] == nil && entries[3]["path"] == nil, "\(entries)")
    }
  }

  /// A refusal before the request is identified, of a request whose head holds its key and its caller.
  enum EarlyRefusal: String, CaseIterable {
    case tooLarge = "request_too_large"
    case timeOut = "request_timeout"
    case noMemory = "overloaded by memory"
    case tooMany = "overloaded by number"

    var limits: String {
      switch self {
      case .tooLarge: "{max_in_flight: 9}"
      case .timeOut: "{body_timeout: 300ms}"
      case .noMemory: "{body_memory: 1MiB}"
      case .tooMany: "{max_in_flight: 1}"
      }
    }

    var code: String { String(rawValue.prefix { $0 != " " }) }

    /// The body of the request that is in flight meanwhile.
    var otherBody: String { self == .noMemory ? String(repeating: "x", count: 700 << 10) : "{}" }

    func refused(_ rig: Rig) async throws -> ReceivedResponse {
      switch self {
      case .tooLarge: return try await rig.order("a", body: String(repeating: "x", count: 2000))
      case .noMemory: return try await rig.order("a", body: otherBody)
      case .tooMany: return try await rig.order("a")
      case .timeOut:
        let connection = try await RawClient(port: rig.semel.ports.proxy)
        let fields = Rig.fields(key: "a") + [("Content-Length", "5")]
        try await connection.send(HTTPClient.request("POST", "/v1/orders", fields))
        return try await connection.response()
      }
    }
  }

  @Test(arguments: EarlyRefusal.allCases)
  func `a request that is refused early is attributed as one that runs`(_ refusal: EarlyRefusal) async throws
  {
    let route = refusal == .tooLarge ? ["max_request_body": "1KiB"] : [:]
    let top = ["limits": refusal.limits, "workers": "1"]
    try await Rig.run(Configuration(top: top, route: route)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/slow") { _ in Reply(gate: gate) }
      async let other = rig.order("b", body: refusal.otherBody, caller: "Bearer bob", path: "/v1/slow")
      try await rig.backend.arrived(1)
      let refused = try await refusal.refused(rig)
      #expect(refused.problem?.code == refusal.code)
      gate.open()
      expectExecuted(try await other)
      expectExecuted(try await rig.order("a"))
      let entries = try await rig.semel.requests(atLeast: 3)
      let (early, run) = (try #require(entries.first { $0["reason"] != nil }), entries[2])
      for member in ["record", "key", "caller", "route", "path"] {
        #expect(early[member] != nil && early[member] == run[member], "\(member) in \(entries)")
      }
      let counted = #"route="orders",reason="\#(refusal.code)""#
      try await rig.semel.counter("semel_refusals_total", label: counted, becomes: 1)
      // The record's trail has it, too.
      let shown = try await rig.key(["show"] + Rig.selection("a")).output
      #expect(shown.contains(#""deliveries" : 2"#), "\(shown)")
    }
  }

  @Test func `an early refusal names no record of a key that is not in the head, or of an observed route`()
    async throws
  {
    let shadowed = "{name: seen, match: {path: /seen}, caller: {shared: true}, shadow: true}"
    let bulk =
      "{name: bulk, match: {path: /bulk}, caller: {shared: true}, "
      + "batch: {items: /orders, key: /id, results: /results}}"
    let configuration = Configuration(
      top: ["limits": "{max_in_flight: 1}", "workers": "1"], firstRoutes: [shadowed, bulk])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/slow") { _ in Reply(gate: gate) }
      async let other = rig.order("b", path: "/v1/slow")
      try await rig.backend.arrived(1)
      for (path, key) in [("/seen", "a"), ("/bulk", "a"), ("/v1/orders", nil), ("/v1/orders", "a,b")] {
        #expect(try await rig.order(key, path: path).status == 503)
      }
      gate.open()
      expectExecuted(try await other)
      let refused = try await rig.semel.requests(atLeast: 5).filter { $0["reason"] != nil }
      #expect(refused.map { $0["route"] } == ["seen", "bulk", "orders", "orders"], "\(refused)")
      #expect(refused.allSatisfy { $0["record"] == nil && $0["key"] == nil }, "\(refused)")
    }
  }

  @Test func `a request whose head cannot be read has an entry with its client and the reason`() async throws
  {
    try await Rig.run(Configuration(top: ["limits": "{header_timeout: 500ms, header_bytes: 4KiB}"])) { rig in
      let heads: [(text: String, status: Int, reason: String)] = [
        (
          "POST /v1/orders HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400,
          "bad_request"
        ),
        (
          "GET / HTTP/1.1\r\nHost: h\r\nX: \(String(repeating: "a", count: 9000))\r\n\r\n", 431,
          "header_too_large"
        ),
        ("GET / HTTP/1.1\r\nHost:", 408, "request_timeout"),
      ]
      for (number, head) in heads.enumerated() {
        let connection = try await RawClient(port: rig.semel.ports.proxy)
        try await connection.send(head.text)
        #expect(try await connection.response().status == head.status)
        let entry = try await rig.semel.requests(atLeast: number + 1)[number]
        #expect(entry["status"] == "\(head.status)" && entry["reason"] == head.reason, "\(entry)")
        #expect(entry["outcome"] == "refused" && entry["client"] == "127.0.0.1", "\(entry)")
        #expect(entry["route"] == nil && entry["path"] == nil, "\(entry)")
      }
      let malformed = HTTP2Script.order("k", [["connection", "close"]])
      let report = try await HTTP2Script.run(rig, [["open", 1, malformed, true], ["response", 1]])
      #expect(try report[1].status == 400)
      let entry = try await rig.semel.requests(atLeast: 4)[3]
      #expect(entry["status"] == "400" && entry["client"] == "127.0.0.1", "\(entry)")
    }
  }

  @Test func `an inquiry names the record that it is about`() async throws {
    try await Rig.run(Configuration(top: ["workers": "1"])) { rig in
      expectExecuted(try await rig.order("a"))
      let question = "/.well-known/idempotency/outcome?method=POST&path=/v1/orders"
      #expect(try await rig.semel.client.send("GET", question, Rig.fields(key: "a")).status == 200)
      let entries = try await rig.semel.requests(atLeast: 2)
      #expect(entries[1]["outcome"] == "reported")
      for member in ["record", "key", "route", "path"] {
        #expect(entries[1][member] != nil && entries[1][member] == entries[0][member], "\(entries)")
      }
      let shown = try await rig.key(["show"] + Rig.selection("a")).output
      #expect(shown.contains(#""deliveries" : 1"#), "\(shown)")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a lost outcome is a warning with its cause, and the list attributes it`(store: StoreKind) async throws
  {
    let upstream = ["response_timeout": "4s", "settle": "1s"]
    try await Rig.run(Configuration(store: store, upstream: upstream)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/slow") { _ in Reply(gate: gate) }
      rig.backend.on("/v1/reset") { _ in .unanswered }
      rig.backend.on("/v1/gateway") { _ in Reply(504, body: "late") }
      for (path, cause) in [("slow", "time_out"), ("reset", "connection_lost"), ("gateway", "status")] {
        _ = try await rig.order(path, path: "/v1/\(path)")
        let id = try #require(rig.backend.requests.last?.requestID)
        let line = try await rig.semel.process.line(containing: #""cause":"\#(cause)""#)
        for member in [#""level":"warning""#, #""record":"\#(id)""#, #""route":"orders""#] {
          #expect(line.contains(member), "\(member) in \(line)")
        }
        let rows = try await rig.key(["list", "--state", "unknown"]).output.split(separator: "\n")
        let row = try #require(rows.first { $0.hasSuffix(id) }, "\(rows)")
        #expect(row.contains(" orders ") && row.contains(" \(cause) "), "\(row)")
      }
      gate.open()
      let json = try await rig.key(["list", "--json", "--route", "orders"]).output
      #expect(json.contains(#""key_digest":"#) && json.contains(#""node":"#), "\(json)")
      #expect(try await rig.key(["list", "--route", "none", "--json"]).output.isEmpty)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a key is found for every caller, without anyone's token`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, top: ["workers": "1"])) { rig in
      expectExecuted(try await rig.order("a"))
      expectReplayed(try await rig.order("a"), 201)
      expectExecuted(try await rig.order("a", caller: "Bearer bob"))
      expectExecuted(try await rig.order("b"))
      let ids = rig.backend.requests.compactMap(\.requestID)
      let found = try await rig.key(["find", "--key", "a", "--route", "orders"]).output
      #expect(found.contains(ids[0]) && found.contains(ids[1]) && !found.contains(ids[2]), "\(found)")
      #expect(found.contains("2 records of 2 callers"), "\(found)")
      // Quoted, as its header may carry it.
      #expect(try await rig.key(["find", "--key", #""a""#]).output.contains(ids[0]))
      let entries = try await rig.semel.requests(atLeast: 4)
      let (alice, digest) = (try #require(entries[0]["caller"]), try #require(entries[0]["key"]))
      #expect(found.contains("the log shows this key as key=\(digest)"), "\(found)")
      let hers = try await rig.key(["find", "--caller-digest", alice]).output
      #expect(hers.contains(ids[0]) && !hers.contains(ids[1]) && hers.contains(ids[2]), "\(hers)")
      let both = try await rig.key(["find", "--key-digest", digest, "--caller-digest", alice]).output
      #expect(both.contains("1 record of 1 caller"), "\(both)")
      let none = try await rig.key(["find", "--key", "never-seen"]).output
      #expect(
        none.contains("there is no such record")
          && none.contains("searched: the whole store, and the latest 4 events"), "\(none)")
      #expect(!(rig.semel.process.output + rig.semel.process.errors).contains("never-seen"))
      let wrong = try await rig.key(["find", "--key", "a", "--route", "none"], ends: .code(1))
      #expect(wrong.errors.contains("there is no route none"))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `records name their origin after a restart, whichever node made them`(store: StoreKind) async throws {
    let upstream = ["response_timeout": "4s", "settle": "1s"]
    try await Rig.run(
      Configuration(store: store, top: ["workers": "1"], upstream: upstream, isAppendOnly: true)
    ) { rig in
      let gate = Gate()
      rig.backend.on("/v1/slow") { _ in Reply(gate: gate) }
      let other = store == .redis ? try await rig.secondNode() : nil
      expectExecuted(try await rig.order("a", at: other))
      _ = try await rig.order("a", caller: "Bearer bob", path: "/v1/slow", at: other)
      let ids = rig.backend.requests.compactMap(\.requestID)
      let entries = try await (other ?? rig.semel).requests(atLeast: 2)
      let (alice, key) = (try #require(entries[0]["caller"]), try #require(entries[0]["key"]))
      let bob = try #require(entries[1]["caller"])
      // Nobody has seen these requests who lives on.
      try await other?.kill()
      try await rig.semel.kill()
      gate.open()
      try await rig.semel.start()

      let rows = try await rig.key(["list", "--route", "orders"]).output.split(separator: "\n")
      let row = try #require(rows.first { $0.hasSuffix(ids[1]) }, "\(rows)")
      for part in [" orders ", " \(key) ", " \(bob) ", " time_out "] {
        #expect(row.contains(part), "\(part) in \(row)")
      }
      let json = try await rig.key(["list", "--json"]).output
      for member in ["first_seen", "age_seconds", "node", "attempt"] {
        #expect(json.contains(#""\#(member)":"#), "\(member) in \(json)")
      }
      let found = try await rig.key(["find", "--key", "a"]).output
      #expect(found.contains("the log shows this key as key=\(key)"), "\(found)")
      #expect(found.contains("2 records of 2 callers"), "\(found)")
      #expect(ids.allSatisfy { found.contains($0) }, "\(found)")
      let hers = try await rig.key(["find", "--caller-digest", alice, "--json"]).output
      #expect(hers.contains(ids[0]) && !hers.contains(ids[1]), "\(hers)")
      let shown = try await rig.key(["show", "--id", ids[1]]).output
      for part in [#""cause" : "time_out""#, #""route" : "orders""#, #""key_digest" : "\#(key)""#] {
        #expect(shown.contains(part), "\(part) in \(shown)")
      }
      #expect(shown.contains("until a late response or `semel key resolve` ends it"), "\(shown)")
      let mistyped = try await rig.key(["list", "--route", "order"])
      let advice = "names the route order; there are some of orders"
      #expect(mistyped.errors.contains(advice), "\(mistyped.errors)")
      let cut = try await rig.key(["find", "--key-digest", "60a9"], ends: .code(2))
      #expect(cut.errors.contains("eight hexadecimal digits"), "\(cut.errors)")
      let bulk = ["resolve", "--not-applied", "--route", "orders", "--older-than", "0s", "--yes"]
      #expect(try await rig.key(bulk).output.contains("1 resolved"))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a node that died is the cause of an unknown outcome`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, isAppendOnly: true)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("a"))
      try await rig.backend.arrived(1)
      let running = try await rig.key(["list"]).output
      #expect(running.contains("in_flight") && running.contains(" orders "), "\(running)")
      try await rig.semel.kill()
      gate.open()
      try await rig.semel.start()
      // It waits for the end of the lease.
      expectRefused(try await rig.order("a"), 409, "outcome_unknown", retryable: true)
      let unknown = try await rig.key(["list", "--state", "unknown"]).output
      #expect(unknown.contains(" lease_lapsed ") && unknown.contains(" orders "), "\(unknown)")
      // Its own process cannot have logged it. The delivery that meets it does, and no later one.
      expectRefused(try await rig.order("a"), 409, "outcome_unknown", retryable: true)
      let (found, entries) = (try await losses(rig, 1), try await rig.semel.requests(atLeast: 2))
      #expect(found.count == 1 && found[0]["level"] == "warning", "\(found)")
      #expect(found[0]["cause"] == "lease_lapsed" && found[0]["attempt"] == "1", "\(found)")
      for member in ["record", "route", "key", "caller"] {
        #expect(found[0][member] != nil && found[0][member] == entries[0][member], "\(found) \(entries)")
      }
      #expect(entries.allSatisfy { $0["cause"] == "lease_lapsed" }, "\(entries)")
      let lost = try await rig.semel.counter("semel_outcomes_lost_total", label: #"route="orders""#)
      #expect(lost == 1)
    }
  }

  @Test func `the loss of a node that died is logged though no client returns`() async throws {
    try await Rig.run { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("a"))
      try await rig.backend.arrived(1)
      let id = try #require(rig.backend.requests[0].requestID)
      try await rig.semel.kill()
      gate.open()
      try await rig.semel.start()
      // The second walk through the store finds it, 15 s after the first.
      let found = try await losses(rig, 1, within: .seconds(45))
      #expect(found[0]["record"] == id && found[0]["cause"] == "lease_lapsed", "\(found)")
      #expect(found[0]["route"] == "orders" && found[0]["node"] != nil, "\(found)")
      let label = #"route="orders""#
      try await rig.semel.counter("semel_outcomes_lost_total", label: label, isAtLeast: 1)
      // The delivery that comes later knows of it.
      expectRefused(try await rig.order("a"), 409, "outcome_unknown", retryable: true)
      #expect(try await rig.semel.requests(atLeast: 1)[0]["cause"] == "lease_lapsed")
      #expect(try await losses(rig, 1).count == 1)
      try await rig.semel.counter("semel_outcomes_lost_total", label: label, becomes: 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a record that only a person can settle counts once when its client returns`(store: StoreKind)
    async throws
  {
    let upstream = ["settle": "100ms"]
    let retried = "{name: retried, match: {path: /retried}, caller: {shared: true}, on_unknown: retry}"
    try await Rig.run(Configuration(store: store, upstream: upstream, firstRoutes: [retried])) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      rig.backend.on("/retried") { _ in .unanswered }
      let returns = { try await rig.semel.counter("semel_unknown_returns_total") }
      for key in ["a", "b"] {
        #expect(try await rig.order(key).status == 502)
        _ = try await rig.order(key) { $0.problem?.retryable == false }
        for _ in 0..<3 { #expect(try await rig.order(key).status == 409) }
        #expect(try await rig.order(key, path: "/retried").status == 502)
        #expect(try await returns() == (key == "a" ? 1 : 2))
      }
      _ = try await rig.order("a", path: "/retried")
      #expect(try await returns() == 2)
    }
  }

  @Test func `each item of a batch names its origin`() async throws {
    let members = "{items: /orders, key: /id, results: /results}"
    try await Rig.run(Configuration(route: ["batch": members])) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      _ = try await rig.order(nil, body: #"{"orders":[{"id":"a"},{"id":"b"}]}"#)
      let json = try await rig.key(["list", "--state", "unknown", "--json"]).output
      let entry = try await rig.semel.requests(atLeast: 1)[0]
      let records = try #require(entry["records"]).split(separator: ",")
      #expect(entry["items"] == "2" && records.count == 2 && entry["record"] == nil, "\(entry)")
      #expect(records.allSatisfy { json.contains($0) }, "\(entry) \(json)")
      let rows = json.split(separator: "\n")
      #expect(rows.count == 2 && rows.allSatisfy { $0.contains(#""route":"orders""#) }, "\(json)")
      #expect(rows.allSatisfy { $0.contains(#""cause":"connection_lost""#) }, "\(json)")
      let found = try await rig.key(["find", "--key", "a"]).output
      #expect(found.contains("1 record of 1 caller"), "\(found)")
      let bulk = ["resolve", "--not-applied", "--route", "orders", "--older-than", "0s", "--yes"]
      #expect(try await rig.key(bulk).output.contains("2 resolved"))
    }
  }
}

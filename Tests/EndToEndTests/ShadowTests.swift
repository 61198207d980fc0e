import Foundation
import TestSupport
import Testing

/// Routes with `shadow: true`: every request runs once, and Semel states what it would have done.
struct ShadowTests {
  private static func configuration(
    _ store: StoreKind, _ members: [String: String] = [:], storeMembers: [String: String] = [:]
  ) -> Configuration {
    Configuration(
      store: store, storeMembers: storeMembers, route: ["shadow": "true"].merging(members) { _, own in own })
  }

  /// Sends an order again until it would have this end. A record is completed a moment after its response.
  private func order(_ rig: Rig, _ key: String, would: String) async throws {
    let response = try await rig.order(key) { $0.idempotencyStatus == "shadow; would=\(would)" }
    #expect(response.status == 201)
  }

  private func expect(
    _ response: ReceivedResponse, would: String, status: Int = 201,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(
      response.idempotencyStatus == "shadow; would=\(would)", "\(response.text)",
      sourceLocation: sourceLocation)
    #expect(response.status == status, "\(response.text)", sourceLocation: sourceLocation)
    #expect(response["Idempotent-Replayed"] == nil, sourceLocation: sourceLocation)
  }

  @Test(arguments: StoreKind.allCases)
  func `every request runs, and its end is stated`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store, ["max_request_body": "1KiB"])) { rig in
      expect(try await rig.order("k"), would: "executed")
      try await order(rig, "k", would: "replayed")
      let before = rig.backend.requests.count
      #expect(before >= 2)
      expect(try await rig.order("k", body: #"{"amount":1}"#), would: "payload_mismatch")
      expect(try await rig.order(nil), would: "key_missing")
      expect(try await rig.order("\"k"), would: "key_invalid")
      let anonymous = [("Idempotency-Key", "k"), ("Content-Type", "application/json")]
      let unknown = try await rig.semel.client.send("POST", "/v1/orders", anonymous, body: "{}")
      expect(unknown, would: "caller_unknown")
      let large = String(repeating: "x", count: 5000)
      expect(try await rig.order("large", body: large), would: "request_too_large")
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(
        "POST /v1/orders HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer alice\r\nIdempotency-Key: chunked\r\n"
          + "Transfer-Encoding: chunked\r\n\r\n1388\r\n\(large)\r\n0\r\n\r\n")
      expect(try await connection.response(), would: "request_too_large")
      let requests = rig.backend.requests
      #expect(requests.count == before + 6)
      #expect(requests.suffix(2).allSatisfy { $0.text == large })
      #expect(requests.allSatisfy { $0.requestID == nil && $0.attempt == nil })
    }
  }

  @Test func `clients that hang up leave no record, and a caller's quota bounds its records`() async throws {
    var configuration = Self.configuration(.embedded)
    configuration.top["limits"] = "{caller_in_flight: 2}"
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      var clients: [RawClient] = []
      for number in 0..<4 {
        clients.append(try await RawClient(port: rig.semel.ports.proxy))
        try await clients[number].send(Rig.orderText("k\(number)"))
        try await rig.backend.arrived(number + 1)
      }
      func records() async throws -> Int {
        try await rig.key(["list", "--json"]).output.split(separator: #""shadowed":true"#).count - 1
      }
      #expect(try await records() == 2)
      try await rig.semel.counter("semel_shadow_total", label: "quota_exceeded", becomes: 2)
      for client in clients { try await client.reset() }
      let deadline = ContinuousClock.now + .seconds(20)
      while try await records() > 0 {
        guard ContinuousClock.now < deadline else { throw TestFailure("the hung-up requests left records") }
      }
      gate.open()
    }
  }

  /// A delayed copy of the renewal would make a deleted record anew, which is unknown then.
  @Test func `a record whose lease was renewed is kept when its client hangs up`() async throws {
    try await Rig.run(Self.configuration(.embedded, ["lease": "4s"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders", inTurn: [Reply(gate: gate), Reply(201)])
      let client = try await RawClient(port: rig.semel.ports.proxy)
      try await client.send(Rig.orderText("k"))
      try await rig.semel.counter("semel_leases_renewed_total", isAtLeast: 1)
      try await client.reset()
      let deadline = ContinuousClock.now + .seconds(20)
      while try await rig.key(["list", "--json"]).output.contains(#""shadowed":true"#) {
        guard ContinuousClock.now < deadline else { throw TestFailure("the record is open") }
      }
      expect(try await rig.order("k", body: "{}"), would: "payload_mismatch")
      expect(try await rig.order("k"), would: "executed")
      gate.open()
    }
  }

  @Test func `an open record names its route, and is found by no key`() async throws {
    try await Rig.run(Self.configuration(.embedded)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      let listed = try await rig.key(["list", "--json"]).output
      #expect(listed.contains(#""route":"orders""#) && !listed.contains("key_digest"), "\(listed)")
      let found = try await rig.key(["find", "--key", "k"]).output
      #expect(found.contains("there is no such record"), "\(found)")
      gate.open()
      _ = try await connection.response()
    }
  }

  @Test func `what a shadowed route has lost counts for no alert`() async throws {
    var configuration = Self.configuration(.embedded)
    configuration.firstRoutes = [
      "{name: other, match: {path: /other}, caller: {parts: ['header:Authorization']}}"
    ]
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders", inTurn: [.unanswered, Reply(201)])
      rig.backend.on("/other") { _ in .unanswered }
      #expect(try await rig.order("shadowed").status == 502)
      try await order(rig, "shadowed", would: "outcome_unknown")
      #expect(try await rig.order("protected", path: "/other").status == 502)
      // A process counts when it begins.
      try await rig.semel.kill()
      try await rig.semel.start()
      let unknown = #"state="unknown""#
      try await rig.semel.counter("semel_open_records", label: unknown, isAtLeast: 1)
      try await rig.semel.counter("semel_open_records", label: unknown, becomes: 1)
      let listed = try await rig.key(["list", "--json", "--route", "orders"]).output
      #expect(listed.contains(#""shadowed":true"#) && listed.contains(#""state":"unknown""#), "\(listed)")
      let bulk = ["resolve", "--not-applied", "--older-than", "0s"]
      let both = try await rig.key(bulk + ["--all-routes"], ends: .code(1)).output
      #expect(both.contains("each key will run, but for 1 of shadowed routes, whose deliveries"), "\(both)")
      let own = try await rig.key(bulk + ["--route", "orders", "--yes"]).output
      #expect(own.contains(": of shadowed routes alone, whose deliveries are all forwarded"), "\(own)")
      #expect(own.contains("1 resolved"), "\(own)")
    }
  }

  @Test(arguments: StoreKind.allCases, ["wait", "reject"])
  func `a duplicate beside its first delivery is not held`(store: StoreKind, duplicates: String) async throws
  {
    try await Rig.run(Self.configuration(store, ["duplicates": duplicates])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders", inTurn: [Reply(201, gate: gate), Reply(201)])
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      let waits = duplicates == "wait"
      expect(try await rig.order("k"), would: waits ? "waited" : "in_flight")
      // A client chooses for itself.
      let preference = ("Prefer", waits ? "wait=0" : "wait=5")
      expect(try await rig.order("k", [preference]), would: waits ? "in_flight" : "waited")
      let counts = try await json(rig, requests: 3)
      #expect(counts["waited"] as? Int == 1 && counts["refused"] as? [String: Int] == ["in_flight": 1])
      #expect(counts["requests"] as? Int == 3 && counts["run_again"] as? Int == 2, "\(counts)")
      gate.open()
      expect(try await first, would: "executed")
      try await order(rig, "k", would: "replayed")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a lost response is unknown, and one that may be retried runs`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store)) { rig in
      rig.backend.on("/v1/orders", inTurn: [.unanswered, Reply(201)])
      #expect(try await rig.order("lost").status == 502)
      try await order(rig, "lost", would: "outcome_unknown")
      rig.backend.on("/v1/orders") { _ in Reply(503) }
      expect(try await rig.order("retried"), would: "executed", status: 503)
      let again = try await rig.order("retried") { $0.idempotencyStatus == "shadow; would=executed" }
      #expect(again.status == 503)
    }
  }

  @Test func `a response that would not be kept is counted as such`() async throws {
    try await Rig.run(Self.configuration(.embedded, ["max_response_body": "16B"])) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, body: String(repeating: "x", count: 17)) }
      expect(try await rig.order("k"), would: "executed")
      try await order(rig, "k", would: "response_not_kept")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `what a shadowed route has kept is never replayed`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store)) { rig in
      expect(try await rig.order("k"), would: "executed")
      try await order(rig, "k", would: "replayed")
      let shadowed = rig.backend.requests.count
      try await rig.reload { $0.route["shadow"] = "false" }
      let first = try await rig.order("k")
      expectExecuted(first)
      expectReplayed(try await rig.order("k"), of: first)
      // Another payload was never refused, either.
      expectExecuted(try await rig.order("other", body: "{}"))
      #expect(rig.backend.requests.count == shadowed + 2)
    }
  }

  @Test(arguments: StoreOutage.allCases)
  func `requests go on while the store is away`(outage: StoreOutage) async throws {
    try await Rig.run(Self.configuration(outage.store, storeMembers: ["timeout": "1500ms"])) { rig in
      expect(try await rig.order("before"), would: "executed")
      let end = try await outage.begin(rig)
      for key in ["a", "b"] {
        let response = try await rig.order(key)
        #expect(response.status == 201)
        expect(response, would: "store_unavailable")
      }
      try await end()
      try await order(rig, "c", would: "executed")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `encrypted stores keep what would have become of requests, too`(store: StoreKind) async throws {
    let secrets = TemporaryDirectory()
    try String(repeating: "s", count: 40).write(
      toFile: secrets.file("secret"), atomically: true, encoding: .utf8)
    let members = ["encryption": "{secret_files: ['\(secrets.file("secret"))']}"]
    try await Rig.run(Self.configuration(store, storeMembers: members)) { rig in
      expect(try await rig.order("k"), would: "executed")
      try await order(rig, "k", would: "replayed")
    }
  }

  @Test func `only mutations are observed on a route for them`() async throws {
    let match = "{methods: [POST], path: /graphql, graphql: mutation}"
    try await Rig.run(Self.configuration(.embedded, ["match": match, "max_request_body": "1KiB"])) { rig in
      func send(_ body: String) async throws -> ReceivedResponse {
        try await rig.order("k", body: body, path: "/graphql")
      }
      expect(try await send(#"{"query":"mutation { a }"}"#), would: "executed")
      #expect(try await send(#"{"query":"{ a }"}"#).idempotencyStatus == "ignored")
      expect(try await send(String(repeating: "x", count: 2000)), would: "request_too_large")
      #expect(rig.backend.requests.count == 3)
    }
  }

  @Test func `the log, the metrics and the report show the evidence`() async throws {
    try await Rig.run(Self.configuration(.embedded)) { rig in
      expect(try await rig.order("k"), would: "executed")
      try await order(rig, "k", would: "replayed")
      expect(try await rig.order("k", body: "{}"), would: "payload_mismatch")
      expect(try await rig.order(nil), would: "key_missing")
      try await rig.semel.process.line(containing: #""would":"payload_mismatch""#)
      let run = rig.backend.requests.count
      let counts = try await json(rig, requests: run)
      #expect(counts["route"] as? String == "orders")
      #expect(counts["requests"] as? Int == run)
      #expect(counts["executed"] as? Int == 1)
      // Deliveries before the record was completed would have been replayed after a wait, which is no refusal.
      #expect(counts["run_again"] as? Int == run - 3)
      #expect(counts["refused"] as? [String: Int] == ["payload_mismatch": 1, "key_missing": 1], "\(counts)")
      let table = try await report(rig, [])
      #expect(table.hasPrefix("ROUTE   REQUESTS  EXECUTED  REPLAYED  WAITED  REFUSED"), "\(table)")
      #expect(table.contains("payload_mismatch 1"), "\(table)")
      #expect(table.contains("A table of keys of its own may have recognised them."), "\(table)")
    }
  }

  /// The report on the only shadowed route, as soon as it counts so many requests: each is counted once its response
  /// has been written, which its client may outrun.
  private func json(_ rig: Rig, requests: Int) async throws -> [String: Any] {
    let deadline = ContinuousClock.now + .seconds(20)
    while true {
      let text = try await report(rig, ["--json"])
      let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
      let counts = try #require(object, "\(text)")
      if counts["requests"] as? Int == requests || ContinuousClock.now > deadline { return counts }
    }
  }

  private func report(_ rig: Rig, _ arguments: [String]) async throws -> String {
    let admin = ["--admin", "http://127.0.0.1:\(rig.semel.ports.admin)"]
    let process = try ManagedProcess([SemelProcess.binary, "shadow-report"] + admin + arguments)
    let end = try await process.exit()
    #expect(end == .code(0), "\(process.output)\(process.errors)")
    return process.output
  }
}

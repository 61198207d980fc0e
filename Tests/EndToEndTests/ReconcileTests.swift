import Foundation
import TestSupport
import Testing

/// Unknown outcomes about which Semel queries the backend.
struct ReconcileTests {
  private static let members =
    "{path: '/lookup?request_id={request_id}', headers: {Authorization: 'Bearer semel'}, status: 201, "
    + "absent: {json: {/code: order_not_found}}}"
  /// The response of the query's handler about a request that it does not know.
  private static let absent = Reply(
    404, [("Content-Type", "application/json")], body: #"{"code":"order_not_found"}"#)

  /// Settings for counts of queries: a verdict counts only if the record is read again within half of that, and on a busy
  /// machine a second query would follow.
  private static let long = "6s"

  private static func configuration(
    _ store: StoreKind = .embedded, settle: String = "1s", reconcile: String = members
  ) -> Configuration {
    Configuration(
      store: store, upstream: ["settle": settle], route: ["on_unknown": "reconcile", "reconcile": reconcile])
  }

  private static func queries(_ rig: Rig) -> [BackendRequest] {
    rig.backend.requests.filter { $0.path == "/lookup" }
  }

  @Test(arguments: StoreKind.allCases)
  func `what the backend has executed is recorded and replayed`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store, settle: Self.long)) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      rig.backend.on("/lookup") { _ in
        Reply(200, [("Content-Type", "application/json"), ("X-Other", "1")], body: #"{"order":7}"#)
      }
      expectRefused(try await rig.order("k"), 502, "outcome_unknown", retryable: true)
      let response = try await rig.order("k") { $0.status == 201 }
      expectReplayed(response, 201)
      #expect(response.text == #"{"order":7}"# && response["Content-Type"] == "application/json")
      #expect(response["X-Other"] == nil)
      expectReplayed(try await rig.order("k"), of: response)
      #expect(rig.backend.runs(of: "k") == 1)
      let query = try #require(Self.queries(rig).first)
      #expect(Self.queries(rig).count == 1)
      #expect(query.method == "GET" && query["Authorization"] == "Bearer semel")
      let id = try #require(rig.backend.requests.first?.requestID)
      #expect(query.target == "/lookup?request_id=\(id)")
      #expect(query["Host"] == rig.backend.requests.first?["Host"])
      #expect(query["Cache-Control"] == "no-cache")
      try await rig.semel.counter("semel_reconciliations_total", label: #"verdict="applied""#, becomes: 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `what the backend does not know runs as the next attempt`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store, settle: Self.long)) { rig in
      rig.backend.on("/v1/orders", inTurn: [.unanswered, Reply(201, body: "made")])
      rig.backend.on("/lookup") { _ in Self.absent }
      expectRefused(try await rig.order("k"), 502, "outcome_unknown", retryable: true)
      let response = try await rig.order("k") { $0.status == 201 }
      expectExecuted(response)
      expectReplayed(try await rig.order("k"), of: response)
      let runs = rig.backend.requests.filter { $0.path == "/v1/orders" }
      #expect(runs.map(\.attempt) == ["1", "2"])
      try await rig.semel.counter("semel_reconciliations_total", label: #"verdict="absent""#, becomes: 1)
    }
  }

  @Test(
    arguments: StoreKind.allCases,
    [
      Reply(500), Reply(302), .unanswered,
      // A gateway's 404, that of a path with a typing error, and one of another handler.
      Reply(404), Reply(404, body: "Cannot GET /lookup"),
      Reply(404, [("Content-Type", "application/json")], body: #"{"code":"no_route"}"#),
      Reply(200, body: "0123456789", ending: .cut(after: 5)),
      // Heads that Semel accepts of no backend: others may read them in another way.
      Reply(404, [("Content-Length", "1")], body: "ab"), Reply(404, [("Content-Length", "2")], body: "ab"),
      Reply(200, [("Transfer-Encoding", "identity")], body: "cut?", framing: .close),
      Reply(200, [("Content-Type", "text/\u{1}plain")], body: "made"),
    ])
  func `without a verdict the outcome stays unknown, until there is one`(store: StoreKind, reply: Reply)
    async throws
  {
    try await Rig.run(Self.configuration(store)) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      rig.backend.on("/lookup") { _ in reply }
      expectRefused(try await rig.order("k"), 502, "outcome_unknown", retryable: true)
      _ = try await rig.order("k") { _ in !Self.queries(rig).isEmpty }
      for _ in 0..<2 { expectRefused(try await rig.order("k"), 409, "outcome_unknown", retryable: true) }
      #expect(rig.backend.runs(of: "k") == 1)
      // Each names the way in which the outcome was lost.
      _ = try await rig.semel.process.lines(atLeast: 2) { $0.contains(#""status":409"#) }
      let refusals = rig.semel.process.output.split(separator: "\n").filter { $0.contains(#""status":409"#) }
      #expect(refusals.allSatisfy { $0.contains(#""cause":"#) }, "\(refusals)")
      rig.backend.on("/lookup") { _ in Reply(200, body: "found") }
      // The verdict is applied only if the record is read again at once.
      let response = try await rig.order("k") { $0.status != 409 }
      expectReplayed(response, 201)
      #expect(response.text == "found" && rig.backend.runs(of: "k") == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `nothing is queried before settle`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store, settle: "60s")) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      _ = try await rig.order("k")
      expectRefused(try await rig.order("k"), 409, "outcome_unknown", retryable: true)
      #expect(Self.queries(rig).isEmpty)
    }
  }

  /// The backend's name in its `url`, and the name that its certificate must have.
  @Test(arguments: [("localhost", ""), ("127.0.0.1", "server_name: localhost")])
  func `the query goes by the upstream's TLS, with Semel's certificate`(host: String, serverName: String)
    async throws
  {
    var backend = try await SecureBackend()
    backend.host = host
    let client = try await backend.certificates.issue("client", subject: "/CN=semel")
    let members = ["certificate: \(client.certificate)", "key: \(client.key)", serverName]
    backend.tls = members.filter { !$0.isEmpty }.joined(separator: ", ")
    backend.directives = "ssl_client_certificate \(backend.certificates.authority); ssl_verify_client on;"
    // A certificate for the address alone would do for neither.
    let pair = try await backend.certificates.issue(
      "named", subject: "/CN=backend", names: ["DNS:localhost"])
    try await backend.run(pair, Self.configuration()) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      rig.backend.on("/lookup") { _ in Reply(200, body: "found") }
      // nginx responds 502 where its backend does not.
      #expect(try await rig.order("k").idempotencyStatus == "unknown")
      let response = try await rig.order("k") { $0.status == 201 }
      expectReplayed(response, 201)
      #expect(response.text == "found")
      let query = try #require(Self.queries(rig).first)
      #expect(query["X-Server-Name"] == "localhost" && query["X-Client"] == "CN=semel")
      #expect(rig.backend.runs(of: "k") == 1)
    }
  }

  @Test func `a backend whose certificate is not verified states nothing`() async throws {
    var backend = try await SecureBackend()
    backend.host = "127.0.0.1"
    backend.tls = "server_name: localhost"
    let certificates = backend.certificates
    let pair = try await certificates.issue("backend", subject: "/CN=backend", names: ["DNS:localhost"])
    try await backend.run(pair, Self.configuration()) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      #expect(try await rig.order("k").idempotencyStatus == "unknown")
      // The authority that Semel trusts is another one by now.
      let stranger = try await Certificates()
      try Data(contentsOf: URL(fileURLWithPath: stranger.authority))
        .write(to: URL(fileURLWithPath: certificates.authority))
      _ = try await rig.order("k") { _ in
        rig.semel.process.output.contains("did not respond to the query")
      }
      #expect(Self.queries(rig).isEmpty && rig.backend.runs(of: "k") == 1)
      expectRefused(try await rig.order("k"), 409, "outcome_unknown", retryable: true)
    }
  }

  @Test func `a query trusts the upstream's authority, and none of the system's besides`() async throws {
    let backend = try await SecureBackend()
    let certificates = backend.certificates
    let stranger = try await Certificates(subject: "/CN=a stranger")
    let system = try await SystemAuthorities(folder: certificates, bundle: stranger)
    try await backend.run(nil, Self.configuration()) { rig in
      try await rig.semel.kill()
      try await rig.semel.start(under: system.wrapper)
      rig.backend.on("/v1/orders") { _ in .unanswered }
      rig.backend.on("/lookup") { _ in Reply(200, body: "forged") }
      #expect(try await rig.order("k").idempotencyStatus == "unknown")
      try Data(contentsOf: URL(fileURLWithPath: stranger.authority))
        .write(to: URL(fileURLWithPath: certificates.authority))
      _ = try await rig.order("k") {
        $0.status == 201 || rig.semel.process.output.contains("did not respond to the query")
      }
      #expect(Self.queries(rig).isEmpty)
      expectRefused(try await rig.order("k"), 409, "outcome_unknown", retryable: true)
      // A call without authorities of its own trusts this backend: the system does.
      rig.backend.on("/readyz") { _ in Reply(200, body: "ready\n") }
      let url = try #require(rig.configuration.upstream["url"]).replacing("'", with: "")
      let health = try ManagedProcess(system.wrapper + [SemelProcess.binary, "health", "--admin", url])
      #expect(try await health.exit() == .code(0), "\(health.errors)")
    }
  }

  @Test func `the query goes by the upstream's unix socket`() async throws {
    let directory = TemporaryDirectory()
    let backend = OrdersBackend(path: directory.file("backend.sock"))
    try await backend.start()
    var configuration = Self.configuration()
    configuration.upstream["url"] = "'unix:\(directory.file("backend.sock"))'"
    try await Rig.run(configuration) { rig in
      backend.on("/v1/orders") { _ in .unanswered }
      backend.on("/lookup") { _ in Reply(200, body: "found") }
      expectRefused(try await rig.order("k"), 502, "outcome_unknown", retryable: true)
      let response = try await rig.order("k") { $0.status == 201 }
      expectReplayed(response, 201)
      #expect(response.text == "found")
      #expect(backend.requests.map(\.path) == ["/v1/orders", "/lookup"])
      #expect(backend.requests[1]["Host"] == backend.requests[0]["Host"])
    }
    try await backend.stop()
  }

  @Test(arguments: StoreKind.allCases)
  func `deliveries of one record share one query`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store, settle: Self.long)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in .unanswered }
      rig.backend.on("/lookup") { _ in Reply(200, body: "found", gate: gate) }
      expectRefused(try await rig.order("k"), 502, "outcome_unknown", retryable: true)
      async let first = rig.order("k") { $0.status == 201 }
      try await rig.backend.log.until("a query") { log in
        log.requests.contains { $0.path == "/lookup" } ? true : nil
      }
      // A loss whose age is told late may have come after the query began, which is of no use to it then.
      async let second = rig.order("k") { $0.status != 409 }
      async let third = rig.order("k") { $0.status != 409 }
      try await rig.semel.counter("semel_in_flight_requests", becomes: 3)
      gate.open()
      for response in [try await first, try await second, try await third] { expectReplayed(response, 201) }
      #expect(Self.queries(rig).count == 1 && rig.backend.runs(of: "k") == 1)
    }
  }

  @Test(arguments: [
    Reply(200, [], content: .filler(4096)), Reply(200, body: "cut?", framing: .close),
    Reply(200, [("Content-Encoding", "gzip")], body: "compressed"),
    Reply(200, [("Content-Encoding", "identity"), ("Content-Encoding", "gzip")], body: "compressed"),
  ])
  func `an outcome that is too large to keep, may be cut or is compressed is known as such`(reply: Reply)
    async throws
  {
    var configuration = Self.configuration()
    configuration.route["max_response_body"] = "1KiB"
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      rig.backend.on("/lookup") { _ in reply }
      _ = try await rig.order("k")
      let response = try await rig.order("k") { $0.problem?.code != "outcome_unknown" }
      expectRefused(response, 409, "response_not_kept", retryable: false)
      #expect(response.problem?.originalStatus == 201 && rig.backend.runs(of: "k") == 1)
    }
  }
}

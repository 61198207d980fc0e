import Foundation
import TestSupport
import Testing

/// One configuration that uses every member of a route.
struct CompleteConfigurationTests {
  private let directory = TemporaryDirectory()
  private let ports = SemelProcess.Ports()
  private let backend = FreePort.find()

  /// The document. Its secrets are files of `directory`.
  private var text: String {
    """
    listen: [{address: "127.0.0.1:\(ports.proxy)"}]
    admin: {address: "127.0.0.1:\(ports.admin)"}
    upstreams: {orders: {url: "http://127.0.0.1:\(backend)"}}
    store:
      kind: embedded
      path: \(directory.file("semel.db"))
      compression: always
      id_secret_file: \(directory.file("id"))
      encryption: {secret_files: [\(directory.file("new")), \(directory.file("old"))]}
    limits: {caller_in_flight: 8, caller_new_keys: 600/m}
    jwt: {hmac_secret_file: \(directory.file("token")), issuer: "https://id.example", audience: orders, leeway: 10s, algorithms: [HS256]}
    unmatched_keys: refuse
    policy_document: "on"
    policy_page: https://docs.example.com/problem-codes
    defaults:
      upstream: orders
      caller: {parts: ["jwt:sub"], anonymous: refuse}
      response_timeout: 20s
    routes:
      - name: mutations
        match: {methods: [POST], path: /graphql, host: "*.example.com", headers: {X-Api-Version: "2"}, graphql: mutation}
        fingerprint: {body: auto, headers: [X-Api-Version], ignore: [/extensions/sent_at, /items/*/at, "query:t"], explain: true}
        duplicates: reject
        content_coding: pass
      - {name: events, match: {path: /hooks/stripe}, profile: webhook, outcomes: {retry: [4xx, 500]}}
      - name: pushes
        match: {path: /hooks/github}
        profile: webhook
        key: {from: ["header:X-GitHub-Delivery"]}
        caller: {shared: true}
      - {name: charges, match: {path: "/stripe/**"}, profile: stripe, outcomes: stripe, released: forget, cors: {origins: ["https://shop.example"], credentials: true}}
      - {name: payments, match: {path: "/paypal/**"}, profile: paypal, remember: 60d, cors: true}
      - {name: square, match: {path: "/square/**"}, profile: square, set_cookie: keep}
      - {name: books, match: {path: "/books/**"}, profile: aip155, spelling: exact, encoded_slashes: keep}
      - {name: tasks, match: {path: "/tasks/**"}, profile: wunderlist, on_unknown: retry, lease: 40s}
      - name: batch
        match: {methods: [POST], path: /orders/batch}
        batch: {items: /orders, key: /request_id, results: /results, max_items: 50}
      - name: pages
        match: {methods: [GET], path: /pages}
        idempotency: optional
        key: {from: [["query:paging_token", "query:page"]], format: any, min_length: 3, max_length: 200}
        retention: 1h
        record: status
        body_timeout: 60s
      - name: reconciled
        match: {methods: [POST], path: "/orders/{id}"}
        profile: ietf
        on_unknown: reconcile
        reconcile: {path: "/orders?request_id={request_id}", headers: {Authorization: "Bearer semel"}, applied: [200], absent: {status: [404], header: {X-Lookup: none}, json: {/code: order_not_found}}, status: 201}
        unknown_retention: 10d
        in_flight_status: 425
        echo_key: true
        method_override: true
        forward_key: {rename: X-Original-Key}
        replay: {drop: [X-Request-Id], keep: [RateLimit]}
        max_attempts: 5
        retries: {max: 2, backoff: 100ms, max_backoff: 2s, budget: 20%, on: [408, 425, 429, 503]}
        lease: 40s
      - name: tenants
        match: {methods: [POST], path: /accounts}
        behind: own_keys
        caller: {parts: ["query:tenant", "json:/account"]}
        key: {from: ["header:X-Request-Id", payload]}
        endpoint: {scope: route, host: any}
        mismatch_status: 422
        wait_timeout: 5s
        max_waiters: 8
        on_store_failure: open
        max_request_body: 256KiB
        max_response_body: 2MiB
      - {name: progress, match: {methods: [POST], path: /reports}, stream: true}
      - {name: observed, match: {methods: [POST], path: /trial}, shadow: true}
    """
  }

  private func writeSecrets() throws {
    for name in ["id", "new", "old", "token"] {
      try String(repeating: "\(name)-", count: 16).write(
        toFile: directory.file(name), atomically: true, encoding: .utf8)
    }
  }

  private func check(_ text: String) async throws -> ManagedProcess {
    try writeSecrets()
    try text.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
    let process = try ManagedProcess([SemelProcess.binary, "check", directory.file("semel.yaml")])
    try await process.exit()
    return process
  }

  @Test func `is accepted, and a process runs on it`() async throws {
    let process = try await check(text)
    #expect(try await process.exit() == .code(0), "\(process.output)\(process.errors)")
    #expect(process.output.contains("good: 14 routes, 1 upstream"), "\(process.output)")
    let semel = try await SemelProcess(ports: ports, configuration: text)
    let nobody = try await semel.client.send("POST", "/reports", [("Idempotency-Key", "k")])
    expectRefused(nobody, 401, "caller_unknown", retryable: false)
    try await semel.kill()
  }

  @Test func `names every member that a route may have`() async throws {
    let wrong = text.replacing("shadow: true}", with: "shadow: true, colour: red}")
    let process = try await check(wrong)
    #expect(try await process.exit() == .code(78))
    let issues = process.output + process.errors
    let members = try #require(issues.firstMatch(of: /colour: unknown member; allowed are (.+)/)).1
      .split(separator: ", ")
    #expect(members.count > 25)
    for member in members { #expect(text.contains("\(member):"), "\(member)") }
  }
}

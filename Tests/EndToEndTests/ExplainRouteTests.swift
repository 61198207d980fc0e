import Foundation
import TestSupport
import Testing

/// `semel explain` on the members of a route by which its responses differ.
struct ExplainRouteTests {
  private static func explain(
    _ members: String, _ arguments: [String] = ["-H", "Idempotency-Key: k1"]
  ) async throws -> String {
    let text = """
      upstreams: {orders: {url: "http://127.0.0.1:9000"}}
      store: {kind: embedded, path: records.db}
      routes: [{name: orders, match: {path: /v1/orders}, caller: {shared: true}\(members)}]

      """
    let directory = TemporaryDirectory()
    try text.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
    let command = [SemelProcess.binary, "explain", directory.file("semel.yaml"), "POST", "/v1/orders"]
    let process = try ManagedProcess(command + arguments)
    let end = try await process.exit()
    #expect(end == .code(0), "\(process.output)\(process.errors)")
    return process.output
  }

  @Test(arguments: [
    ("", "wait up to 10s, then get 409 in_flight; another payload"),
    (", in_flight_status: 503, wait_timeout: 3s", "wait up to 3s, then get 503 in_flight; another payload"),
    (", in_flight_status: 425, duplicates: reject", "get 425 in_flight at once; another payload"),
  ])
  func `the status of a duplicate is shown`(members: String, expected: String) async throws {
    let output = try await Self.explain(members)
    #expect(output.contains("\nduplicates   \(expected)"), "\(output)")
  }

  @Test(arguments: [
    (
      ", echo_key: true", ["-H", "Idempotency-Key: k1"],
      "responses repeat the key in Idempotency-Key (echo_key)"
    ),
    (
      ", echo_key: true, key: {from: ['header:X-Order']}", ["-H", "X-Order: order-7"],
      "responses repeat the key in X-Order (echo_key)"
    ),
    (
      ", echo_key: true, key: {from: ['json:/id']}",
      ["-H", "Content-Type: application/json", "-d", #"{"id":"a"}"#],
      "responses repeat the key in Idempotency-Key (echo_key)"
    ),
  ])
  func `the field that repeats the key is shown`(
    members: String, arguments: [String], expected: String
  ) async throws {
    let output = try await Self.explain(members, arguments)
    #expect(output.contains("\necho         \(expected)\n"), "\(output)")
  }

  @Test func `a key that is not repeated is said to be none`() async throws {
    let output = try await Self.explain(", echo_key: true, key: {from: [payload]}", ["-d", "a"])
    #expect(
      output.contains(
        "\necho         none: a key of several values or of the payload is not repeated (echo_key)\n"),
      "\(output)")
    #expect(try await !Self.explain("").contains("\necho "))
    #expect(try await !Self.explain(", echo_key: true, shadow: true").contains("\necho "))
  }

  @Test func `a route's own time for a body is shown`() async throws {
    let output = try await Self.explain(", body_timeout: 2m")
    #expect(output.contains("\nbody         may pause for 2m (the route's body_timeout)\n"), "\(output)")
    #expect(try await !Self.explain("").contains("\nbody "))
  }

  @Test(arguments: [
    (", retention: 1h", "replayed for 1h, remembered for 1d, after which a retry runs again;"),
    (", record: status", "known to have ended for 1d, remembered for 2d, after which a retry runs again;"),
  ])
  func `the time after which a retry runs again is shown`(members: String, expected: String) async throws {
    let output = try await Self.explain(members)
    #expect(output.contains("\nkept         \(expected)"), "\(output)")
  }

  @Test func `a record without its response is not said to have its fields`() async throws {
    let output = try await Self.explain(", record: status, set_cookie: keep")
    #expect(output.contains("status and Location of the response (record: status), no body\n"), "\(output)")
    #expect(!output.contains("cookies") && !output.contains("without the fields"), "\(output)")
  }
}

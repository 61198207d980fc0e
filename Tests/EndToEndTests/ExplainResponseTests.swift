import Foundation
import TestSupport
import Testing

/// `semel explain --response`: which rule of a route a response meets.
struct ExplainResponseTests {
  private static let ruled = """
    listen: [{address: 127.0.0.1:8080}]
    upstreams: {orders: {url: "http://127.0.0.1:9000"}}
    store: {kind: embedded, path: records.db}
    routes:
      - {name: open, match: {path: /open}, idempotency: off}
      - name: orders
        caller: {shared: true}
        behind: own_keys
        max_response_body: 1KiB
        outcomes:
          - {status: [500-599], header: {Transient-Error: "true"}, is: retry}
          - {status: 422, json: {/code: stale, /n: null}, is: deleted}
          - {status: [4xx], json: {/code: present}, is: final}
    """

  /// Responses, and the lines that explain them.
  static let responses: [(response: String, lines: [String])] = [
    (
      "HTTP/1.1 500 Internal Server Error\r\nTransient-Error: true\r\nContent-Length: 99\r\n\r\nbusy",
      [
        "response     500, meets rule 1: status 5xx; header transient-error: true → retry",
        "             class retry: released, and the next delivery runs",
      ]
    ),
    (
      "HTTP/2 422\r\ncontent-type: application/json\r\n\r\n{\"code\":\"stale\",\"n\":null}\n",
      [
        "response     422, meets rule 2: status 422; json /code: stale; json /n: null → deleted",
        "             class retry: released, and another payload may follow under the key",
      ]
    ),
    // By lines of an editor, behind an interim response.
    (
      "HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.1 404 Not Found\nTransfer-Encoding: chunked\n\n{\"code\":1}",
      [
        "response     404, meets rule 3: status 4xx; json /code: present → final",
        "             class final: recorded and replayed", "             after a lost outcome: class unknown",
      ]
    ),
    (
      "HTTP/1.1 404 Not Found\r\n\r\n{}",
      [
        "response     404, meets no rule, by the route's table of statuses and what the response says of its sender",
        "             class final: recorded and replayed",
      ]
    ),
    (
      "HTTP/1.1 404 Not Found\r\n\r\n{\"code\":\"" + String(repeating: "x", count: 1100) + "\"}",
      [
        "response     404, meets no rule, ",
        "             (no rule with json is met: the body is larger than max_response_body)",
      ]
    ),
    (
      "HTTP/1.1 422 No\r\nContent-Encoding: gzip\r\n\r\n{\"code\":1}",
      ["response     422, meets no rule, ", "             (no rule with json is met: the body is coded)"]
    ),
    (
      "HTTP/1.1 422 No\r\nIdempotency-Outcome: unknown\r\n\r\n{\"code\":1}",
      [
        "response     422, by its Idempotency-Outcome, which counts before all rules",
        "             class unknown: the outcome is unknown (on_unknown: hold)",
      ]
    ),
    (
      "HTTP/1.1 503 Service Unavailable\r\nVia: 1.1 varnish\r\n\r\n", ["             class unknown: "]
    ),
    (
      "HTTP/1.1 409 Conflict\r\n\r\n",
      ["             class retry: ", "             after a lost outcome: class unknown"]
    ),
    ("HTTP/1.1 401 Unauthorized", ["             class retry: released, and another payload may follow"]),
  ]

  private static let request = ["POST", "/v1/orders", "-H", "Idempotency-Key: k1"]

  /// Runs the command with a file that has this response.
  private func explain(
    _ request: [String] = Self.request, response: String, ends exit: ManagedProcess.Exit = .code(0)
  ) async throws -> ManagedProcess {
    let directory = TemporaryDirectory()
    try response.write(toFile: directory.file("r"), atomically: true, encoding: .utf8)
    try Self.ruled.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
    let process = try ManagedProcess(
      [SemelProcess.binary, "explain", directory.file("semel.yaml")] + request
        + ["--response", directory.file("r")])
    let end = try await process.exit()
    #expect(end == exit, "\(process.output)\(process.errors)")
    return process
  }

  @Test(arguments: ExplainResponseTests.responses)
  func `a response is explained by the rule that it meets`(response: String, lines: [String]) async throws {
    let output = try await explain(response: response).output
    for line in lines { #expect(output.contains("\n" + line), "\(line) in\n\(output)") }
    for rule in ["rule 1: status 5xx; ", "rule 3: status 4xx; json /code: present → final\n"] {
      #expect(output.contains(rule), "\(output)")
    }
    let unprotected = try await explain(["POST", "/open"], response: response).output
    #expect(
      unprotected.contains("response     has no class: the request is not recorded"), "\(unprotected)")
  }

  @Test(arguments: ["", "{}", "HTTP/1.1", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nno field\r\n\r\n"])
  func `what is no response is refused`(text: String) async throws {
    let errors = try await explain(response: text, ends: .code(1)).errors
    #expect(errors.contains("r is no HTTP response: it begins with a status line"), "\(errors)")
  }

  @Test func `a response may come by standard input`() async throws {
    let directory = TemporaryDirectory()
    try Self.ruled.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
    let command =
      "printf 'HTTP/1.1 500 x\\r\\nTransient-Error: true\\r\\n\\r\\n' | \"$0\" explain \"$1\" POST /v1/orders "
      + "-H 'Idempotency-Key: k' --response -"
    let process = try ManagedProcess(["sh", "-c", command, SemelProcess.binary, directory.file("semel.yaml")])
    #expect(try await process.exit() == .code(0), "\(process.errors)")
    #expect(process.output.contains("response     500, meets rule 1: "), "\(process.output)")
  }
}

import Foundation
import TestSupport
import Testing

/// Clients that nobody here wrote, with a time-out shorter than the backend takes: they retry by themselves.
struct ClientTests {
  /// Longer than each client waits, and short enough for its retries.
  private static let slow = Duration.milliseconds(2500)

  /// Runs a script of `Clients` and decodes the JSON that it prints.
  private func run<Result: Decodable>(_ script: String, _ arguments: String...) async throws -> Result {
    let process = try Python.start(script, arguments)
    let exit = try await process.exit(within: .seconds(50))
    guard exit == .code(0) else {
      throw TestFailure("\(script) ended with \(exit):\n\(process.output)\(process.errors)")
    }
    return try JSONDecoder().decode(Result.self, from: Data(process.state.value.output))
  }

  struct Charge: Decodable {
    let id: String
    let amount: Int
    let number: Int
  }

  @Test(arguments: StoreKind.allCases)
  func `Stripe's SDK charges once, whatever its time-out`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      rig.backend.on("/v1/charges") { request in
        Reply(
          200, body: #"{"id":"ch_1","object":"charge","amount":1999,"number":\#(request.number)}"#,
          delay: Self.slow)
      }
      let charge: Charge = try await run("stripe_charge", "http://127.0.0.1:\(rig.semel.ports.proxy)", "1")
      #expect(charge.id == "ch_1")
      #expect(charge.amount == 1999)
      #expect(charge.number == 1)
      #expect(rig.backend.requests.count == 1)
      #expect(rig.backend.requests[0].text.contains("amount=1999"))
      #expect(rig.backend.requests[0]["Authorization"]?.contains("sk_test_semel") == true)
    }
  }

  struct Placed: Decodable {
    let status: Int
    let idempotency: String?
    let body: String
    let retries: Int
  }

  @Test(arguments: StoreKind.allCases)
  func `urllib3's Retry orders once, whatever its time-out`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      rig.backend.on("/v1/orders") { Reply(body: #"{"order":\#($0.number)}"#, delay: Self.slow) }
      let placed: Placed = try await run(
        "urllib3_order", "http://127.0.0.1:\(rig.semel.ports.proxy)/v1/orders", "1")
      #expect(placed.status == 201)
      #expect(placed.idempotency == "replayed")
      #expect(placed.body == #"{"order":1}"#)
      #expect(placed.retries >= 1)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `curl --retry orders once, whatever its time-out`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      rig.backend.on("/v1/orders") { Reply(body: #"{"order":\#($0.number)}"#, delay: Self.slow) }
      let curl = try ManagedProcess([
        "curl", "--silent", "--show-error", "--include", "--max-time", "1", "--retry", "8", "--retry-delay",
        "1",
        "--retry-all-errors", "--header", "Idempotency-Key: order-17", "--header",
        "Authorization: Bearer alice",
        "--json", #"{"amount":1999}"#, "http://127.0.0.1:\(rig.semel.ports.proxy)/v1/orders",
      ])
      let exit = try await curl.exit(within: .seconds(50))
      #expect(exit == .code(0), "\(curl.errors)")
      #expect(curl.output.contains("HTTP/1.1 201"))
      #expect(curl.output.lowercased().contains("idempotency-status: replayed"))
      #expect(curl.output.hasSuffix(#"{"order":1}"#))
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `curl sees execution, replay and refusals`() async throws {
    try await Rig.run { rig in
      func curl(_ arguments: [String]) async throws -> String {
        let url = "http://127.0.0.1:\(rig.semel.ports.proxy)/v1/orders"
        let process = try ManagedProcess(
          ["curl", "--silent", "--include", "--header", "Authorization: Bearer alice"] + arguments + [url])
        try await process.exit()
        return process.output
      }
      let key = ["--header", "Idempotency-Key: order-17"]
      let body = ["--json", #"{"amount":1999}"#]
      for (arguments, expected) in [
        (key + body, "Idempotency-Status: executed"), (key + body, "Idempotency-Status: replayed"),
        (key + ["--json", "{}"], "payload_mismatch"), (body, "key_missing"),
      ] {
        let output = try await curl(arguments)
        #expect(output.contains(expected), "\(output)")
      }
    }
  }
}

import TestSupport
import Testing

/// The memory that is reserved for a response before its request is claimed.
struct CaptureReservationTests {
  /// Room for 24 reservations.
  private static let limits = ["limits": "{body_memory: 1MiB}", "workers": "1"]

  @Test(arguments: StoreKind.allCases)
  func `waiting duplicates hold no memory for bodies`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, top: Self.limits)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "once", gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      // Each reserves until its claim has a reply, so that they come in groups.
      var duplicates: [Task<ReceivedResponse, any Error>] = []
      while duplicates.count < 40 {
        duplicates += (0..<10).map { _ in Task { try await rig.order("k") } }
        try await rig.semel.counter("semel_waiting_requests", becomes: duplicates.count)
      }
      expectExecuted(try await rig.order("other", path: "/v1/other"))
      gate.open()
      let executed = try await first
      for duplicate in duplicates { expectReplayed(try await duplicate.value, of: executed) }
    }
  }

  /// A backend whose first response to an order is 503, once `refusal` is open, and whose response of 200 KiB to
  /// `/v1/large` stops in the middle until `rest` is.
  private struct StagedBackend {
    let refusal = ScriptGate()
    let rest = ScriptGate()
    let server: RawServer

    init() throws {
      let part = String(repeating: "x", count: 100 << 10)
      server = try RawServer { [refusal, rest] connection in
        while true {
          let request = try connection.readRequest()
          if request.hasPrefix("POST /v1/large") {
            try connection.write("HTTP/1.1 201 Created\r\nContent-Length: 204800\r\n\r\n\(part)")
            rest.pass()
            try connection.write(part)
          } else if request.contains("Idempotency-Attempt: 1\r\n") {
            refusal.pass()
            try connection.write("HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n")
          } else {
            try connection.write("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
          }
        }
      }
    }

    var upstream: [String: String] { ["url": "'http://127.0.0.1:\(server.port)'"] }
  }

  @Test func `a retry has the memory of its first attempt`() async throws {
    let backend = try StagedBackend()
    let configuration = Configuration(
      top: Self.limits, upstream: backend.upstream,
      route: ["retries": "{max: 1, backoff: 1ms}"])
    try await Rig.run(configuration) { rig in
      async let first = rig.order("k")
      await backend.server.reached { $0.requests == 1 }
      // An upload that does not end, and then a response that does not: more than three quarters are taken.
      let upload = try await RawClient(port: rig.semel.ports.proxy)
      let fields = Rig.fields(key: "upload") + [("Transfer-Encoding", "chunked")]
      let body = String(repeating: "x", count: 600 << 10)
      try await upload.send(HTTPClient.request("POST", "/v1/orders", fields) + "96000\r\n\(body)\r\n")
      try await rig.semel.counter("semel_body_bytes", isAtLeast: 590 << 10)
      async let large = rig.order("large", path: "/v1/large")
      try await rig.semel.counter("semel_body_bytes", isAtLeast: 769 << 10)
      expectRefused(try await rig.order("other"), 503, "overloaded", retryable: true)
      backend.refusal.open()
      expectExecuted(try await first)
      try await rig.semel.counter("semel_client_retries_total", becomes: 1)
      backend.rest.open()
      #expect(try await large.body.count == 200 << 10)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a waiter that finds no memory releases its claim`(store: StoreKind) async throws {
    let backend = try StagedBackend()
    let configuration = Configuration(
      store: store, top: Self.limits, upstream: backend.upstream)
    try await Rig.run(configuration) { rig in
      async let first = rig.order("k")
      await backend.server.reached { $0.requests == 1 }
      async let waiter = rig.order("k")
      try await rig.semel.counter("semel_waiting_requests", becomes: 1)
      async let large = rig.order("large", path: "/v1/large")
      // The whole length is taken with the head.
      try await rig.semel.counter("semel_body_bytes", isAtLeast: 190 << 10)
      backend.refusal.open()
      #expect(try await first.status == 503)
      expectRefused(try await waiter, 503, "overloaded", retryable: true)
      #expect(backend.server.tally.requests == 2)
      backend.rest.open()
      #expect(try await large.body.count == 200 << 10)
      // Free at once: nobody has to wait for the lease of the waiter's claim.
      expectExecuted(try await rig.order("k"))
    }
  }
}

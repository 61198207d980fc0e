import TestSupport
import Testing

/// The metrics page, as Prometheus reads it.
struct MetricsTests {
  private func samples(_ rig: Rig) async throws -> [String: Double] {
    try await PythonScript.run("metrics_page", ["http://127.0.0.1:\(rig.semel.ports.admin)/metrics"])
  }

  @Test(arguments: StoreKind.allCases)
  func `it tells what became of requests, and what the backend was spared`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      expectExecuted(try await rig.order("a"))
      for _ in 0..<3 { expectReplayed(try await rig.order("a"), 201) }
      expectRefused(try await rig.order("a", body: "{}"), 409, "payload_mismatch", retryable: false)
      expectRefused(try await rig.order(nil), 400, "key_missing", retryable: false)
      _ = try await rig.order("b", path: "/elsewhere")
      let page = try await samples(rig)
      #expect(page["semel_requests_total{outcome=executed,route=orders}"] == 1)
      #expect(page["semel_requests_total{outcome=replayed,route=orders}"] == 3)
      #expect(page["semel_requests_total{outcome=refused,route=orders}"] == 2)
      #expect(page["semel_requests_total{outcome=ignored,route=(none)}"] == 1)
      #expect(page["semel_refusals_total{reason=payload_mismatch,route=orders}"] == 1)
      #expect(page["semel_refusals_total{reason=key_missing,route=orders}"] == 1)
      #expect(page["semel_failures_total{category=validation,route=orders}"] == 2)
      #expect(page["semel_duplicates_prevented_total{by=replay,route=orders}"] == 3)
      #expect(page["semel_duplicates_prevented_total{by=refusal,route=orders}"] == 1)
      let replays = ["cache", "store"].compactMap { page["semel_replays_total{route=orders,source=\($0)}"] }
      #expect(replays.reduce(0, +) == 3)
      #expect(page["semel_request_duration_seconds_count{outcome=executed,route=orders}"] == 1)
      for part in ["claim", "backend", "record"] {
        let count = page["semel_request_part_duration_seconds_count{part=\(part),route=orders}"] ?? 0
        #expect(count >= 1, "\(part)")
      }
      #expect(page["semel_time_to_success_seconds_count{route=orders}"] == 1)
      #expect(page["semel_store_command_duration_seconds_count{command=complete}"] == 1)
      #expect((page["semel_store_round_trips_total"] ?? 0) >= 2)
      #expect((page["semel_store_connections_up"] ?? 0) >= 1)
      #expect(page["semel_in_flight_requests"] == 0)
      #expect((page["semel_connections_total"] ?? 0) >= 6)
      #expect((page["semel_upstream_sends_total"] ?? 0) == 2)
      #expect((page["semel_process_resident_memory_bytes"] ?? 0) > 1_000_000)
      #expect((page["semel_event_loop_lag_seconds_count"] ?? 0) >= 1)
    }
  }

  @Test func `it tells of waiting duplicates, of lost outcomes, and of attempts that follow them`()
    async throws
  {
    let configuration = Configuration(
      upstream: ["settle": "100ms", "response_timeout": "300ms"], route: ["on_unknown": "retry"])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders") { request in
        Reply(body: "{}", delay: request.number == 1 ? .seconds(2) : .milliseconds(100))
      }
      _ = try await rig.order("lost")
      let first = try await rig.order("lost") { $0.status == 201 }
      expectExecuted(first)
      let page = try await samples(rig)
      #expect(page["semel_outcomes_lost_total{route=orders}"] == 1)
      #expect(page["semel_retries_total{after=unknown,route=orders}"] == 1)
      #expect((page["semel_failures_total{category=transport,route=orders}"] ?? 0) >= 1)

      async let one = rig.order("twice")
      async let two = rig.order("twice")
      #expect(Set([try await one.status, try await two.status]) == [201])
      #expect(try await samples(rig)["semel_duplicates_prevented_total{by=wait,route=orders}"] == 1)
    }
  }

  @Test func `of replays it logs as many as it is told to`() async throws {
    let configuration = Configuration(top: [
      "log": "{level: info, format: json, access: true, replay_sample: 3}"
    ])
    try await Rig.run(configuration) { rig in
      for _ in 0..<7 { _ = try await rig.order("a") }
      _ = try await rig.order(nil)
      try await rig.semel.process.line(containing: "key_missing")
      let lines = rig.semel.process.output.split(separator: "\n")
      #expect(lines.count { $0.contains(#""outcome":"replayed""#) && $0.contains(#""sample":3"#) } == 2)
      #expect(lines.count { $0.contains(#""outcome":"executed""#) } == 1)
    }
  }
}

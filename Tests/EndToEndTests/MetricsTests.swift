import TestSupport
import Testing

/// The metrics page, as Prometheus reads it.
struct MetricsTests {
  private func samples(_ rig: Rig) async throws -> [String: Double] {
    try await Python.run("metrics_page", ["http://127.0.0.1:\(rig.semel.ports.admin)/metrics"])
  }

  @Test(arguments: StoreKind.allCases)
  func `the page counts requests by outcome, and replays`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      expectExecuted(try await rig.order("a"))
      for _ in 0..<3 { expectReplayed(try await rig.order("a"), 201) }
      expectRefused(try await rig.order("a", body: "{}"), 409, "payload_mismatch", retryable: false)
      expectRefused(try await rig.order(nil), 400, "key_missing", retryable: false)
      _ = try await rig.order("b", path: "/elsewhere")
      // A request is counted once its response has been written, which its client may outrun.
      try await rig.semel.counter("semel_requests_total", becomes: 7)
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
      // Measured once a second.
      _ = try await Rig.repeated {
        $0.text.contains(/semel_event_loop_lag_seconds_count [1-9]/)
      } _: {
        try await rig.semel.admin.send("GET", "/metrics")
      }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `six routes have few series at the start, and then those that count`(store: StoreKind) async throws {
    let others = (1...5).map {
      "{name: route-\($0), match: {methods: [POST], path: /v\($0 + 1)/orders}, caller: {parts: [address]}}"
    }
    try await Rig.run(Configuration(store: store, firstRoutes: others)) { rig in
      func series(_ label: String = "") async throws -> Int {
        try await samples(rig).keys.count { $0.hasPrefix("semel_") && $0.contains(label) }
      }
      // Two dozen of them are each a histogram: the loops' lag, and the store's first command.
      #expect(try await series() <= 160)
      #expect(try await series("route=") == 35)
      for path in ["/v1/orders"] + (2...6).map({ "/v\($0)/orders" }) {
        expectExecuted(try await rig.order("a", path: path))
        expectReplayed(try await rig.order("a", path: path), 201)
      }
      // A route has six histograms of 19 to 23 series: of two outcomes, of three parts, and of the time to success.
      #expect(try await series("route=") <= 6 * 150 + 5)
      #expect(try await series("route=(none)") == 5)
      #expect(try await series() <= 6 * 150 + 200)
      #expect(try await samples(rig)["semel_body_limit_bytes"] == Double(256 << 20))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a mismatch with a cached record is one hit of the cache`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      expectExecuted(try await rig.order("a"))
      var before: [String: Double] = [:]
      // The cache of Redis begins with its subscription.
      repeat {
        expectReplayed(try await rig.order("a"), 201)
        before = try await samples(rig)
      } while before["semel_cache_hits_total"] ?? 0 == 0
      expectRefused(try await rig.order("a", body: "{}"), 409, "payload_mismatch", retryable: false)
      let after = try await samples(rig)
      for (name, count) in [("semel_cache_hits_total", 1), ("semel_cache_misses_total", 0)] {
        #expect((after[name] ?? 0) - (before[name] ?? 0) == Double(count), "\(name)")
      }
    }
  }

  @Test func `the page counts waiting duplicates, lost outcomes, and the attempts that follow them`()
    async throws
  {
    let configuration = Configuration(
      upstream: ["settle": "100ms"], route: ["on_unknown": "retry"])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders") { request in
        Reply(body: "{}", ending: request.number == 1 ? .closedWithoutResponse : .whole)
      }
      _ = try await rig.order("lost")
      let first = try await rig.order("lost") { $0.status == 201 }
      expectExecuted(first)
      try await rig.semel.counter("semel_requests_total", label: "executed", becomes: 1)
      let page = try await samples(rig)
      #expect(page["semel_outcomes_lost_total{route=orders}"] == 1)
      #expect(page["semel_retries_total{after=unknown,route=orders}"] == 1)
      #expect((page["semel_failures_total{category=transport,route=orders}"] ?? 0) >= 1)

      let gate = Gate()
      rig.backend.on("/v1/twice") { _ in Reply(body: "{}", gate: gate) }
      async let one = rig.order("twice", path: "/v1/twice")
      async let two = rig.order("twice", path: "/v1/twice")
      try await rig.semel.counter("semel_waiting_requests", becomes: 1)
      gate.open()
      #expect(Set([try await one.status, try await two.status]) == [201])
      try await rig.semel.counter("semel_duplicates_prevented_total", label: #"by="wait""#, becomes: 1)
    }
  }

  @Test func `the page counts the operator's own requests by route, through swift-metrics`()
    async throws
  {
    try await Rig.run { rig in
      for path in ["/nowhere", "/elsewhere/4242"] { try await rig.semel.page(path, becomes: 404) }
      #expect(try await rig.semel.admin.send("BREW", "/livez").status == 400)
      // A response is counted when it has been written, which its reader may outrun.
      let ready = #"http_response_status_code="200",http_route="/readyz""#
      try await rig.semel.counter("hb_requests_total", label: ready, isAtLeast: 1)
      let page = try await samples(rig)
      let request = "http_request_method=GET,http_response_status_code"
      #expect(page["hb_requests_total{\(request)=404,http_route=NotFound}"] == 2)
      let error = "error_type=404,http_request_method=GET"
      #expect(page["hb_request_errors_total{\(error),http_route=NotFound}"] == 2)
      let times = page["http_server_request_duration_seconds_count{\(request)=200,http_route=/readyz}"] ?? 0
      #expect(times >= 1)
      #expect((page["http_server_active_requests{http_request_method=GET}"] ?? 0) >= 1)
      #expect(!page.keys.contains { $0.contains("4242") || $0.contains("BREW") })
      #expect(page["semel_metric_series_dropped_total"] == 0)
      let requests = page.filter { $0.key.hasPrefix("semel_requests_total{") }
      #expect(!requests.isEmpty && requests.values.allSatisfy { $0 == 0 })
    }
  }

  @Test func `metrics of swift-metrics have their own names, their help, and begin at zero`()
    async throws
  {
    try await Rig.run { rig in
      let page = try await rig.semel.admin.send("GET", "/metrics").text
      for (name, help) in [
        ("connections", "Client connections accepted."),
        ("connections_refused", "Client connections over the limit, or while shutting down."),
        ("framing_errors", "Requests whose bytes are no unambiguous HTTP."),
        ("hang_ups", "Clients that went away before their response."),
        ("slow_readers", "Clients cut because they did not read their response."),
        ("reloads", "Configurations read again and put to work."),
        ("reloads_refused", "Configurations read again and refused."),
      ] {
        let name = "semel_\(name)_total"
        #expect(page.contains("# HELP \(name) \(help)\n# TYPE \(name) counter\n\(name) 0\n"), "\(name)")
      }
      _ = try await rig.order("a")
      try await rig.semel.counter("semel_connections_total", becomes: 1)
    }
  }

  @Test func `the configured share of replays is logged`() async throws {
    let configuration = Configuration(top: [
      "log": "{level: info, format: json, access: true, replay_sample: 3}", "workers": "1",
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

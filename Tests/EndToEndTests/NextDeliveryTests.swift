import Foundation
import TestSupport
import Testing

/// The statements of `semel key show` about a record and about what the next delivery gets.
struct NextDeliveryTests {
  @Test func `a record tells what the next delivery gets`() async throws {
    let upstream = ["response_timeout": "10s", "settle": "10s"]
    try await Rig.run(Configuration(upstream: upstream)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders", inTurn: [Reply(201), .unanswered, Reply(429), Reply(gate: gate)])
      let next = { (key: String) async throws -> Substring in
        let shown = try await rig.key(["show"] + Rig.selection(key)).output
        return try #require(shown.split(separator: "\n").first { $0.contains("next_delivery") })
      }
      #expect(try await next("none").contains("runs: there is no record"))
      _ = try await rig.order("completed")
      #expect(try await next("completed").contains("gets the recorded response, 201, until 20"))
      _ = try await rig.order("unknown")
      #expect(try await next("unknown").contains("gets 409 outcome_unknown until a late response"))
      _ = try await rig.order("busy")
      let running = try await RawClient(port: rig.semel.ports.proxy)
      try await running.send(Rig.orderText("running"))
      try await rig.backend.arrived(4)
      #expect(try await next("running").contains("waits up to 15 s for the response of attempt 1"))
      gate.open()
      _ = try await running.response()
    }
  }

  /// The outcome of the next delivery that `semel key show` gives for a record of a route.
  private func next(_ rig: Rig, _ route: String, _ key: String = "a") async throws -> String {
    let selection = ["--route", route, "--key", key, "--method", "POST", "--host", "orders.example"]
    let shown = try await rig.key(["show"] + selection).output
    return String(try #require(shown.split(separator: "\n").first { $0.contains("next_delivery") }))
  }

  @Test(arguments: StoreKind.allCases)
  func `a record tells what the next delivery gets by the rules of its route`(store: StoreKind) async throws {
    let lookup = "reconcile: {path: '/lookup?request_id={request_id}', absent: {header: {X-Lookup: none}}}"
    let routes = [
      ("reject", "duplicates: reject"), ("retry", "on_unknown: retry"),
      ("ask", "on_unknown: reconcile, \(lookup)"),
      ("brief", "retention: 1s, remember: 1h"), ("small", "max_response_body: 1KiB, mismatch_status: 422"),
      ("seen", "shadow: true"),
    ].map { "{name: \($0), match: {methods: [POST], path: /\($0)}, caller: {shared: true}, \($1)}" }
    let configuration = Configuration(store: store, upstream: ["settle": "1h"], firstRoutes: routes)
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/reject") { _ in Reply(gate: gate) }
      for path in ["/retry", "/ask"] { rig.backend.on(path) { _ in .unanswered } }
      rig.backend.on("/small") { _ in Reply(201, [], content: .filler(300_000)) }
      async let running = rig.order("a", path: "/reject")
      try await rig.backend.arrived(1)
      for path in ["/retry", "/ask", "/brief", "/small", "/seen"] { _ = try await rig.order("a", path: path) }
      let mismatch = "; another payload gets 409 payload_mismatch"
      for (route, text) in [
        ("reject", "gets 409 in_flight until attempt 1, which runs now, has ended" + mismatch),
        ("retry", "then runs again as attempt 2, since `on_unknown` is retry" + mismatch),
        (
          "ask",
          "then has the backend queried first: what was applied is replayed, what is absent runs as attempt 2"
        ),
        ("small", "gets 409 response_not_kept until 20"),
        ("small", "; another payload gets 422 payload_mismatch"),
        (
          "seen",
          "is forwarded, since the route has `shadow: true`; without that, it gets the recorded response"
        ),
      ] {
        let line = try await next(rig, route)
        #expect(line.contains(text), "\(route): \(line)")
      }
      // The other records get the responses that it states.
      expectRefused(try await rig.order("a", path: "/reject"), 409, "in_flight", retryable: true)
      expectRefused(
        try await rig.order("a", body: "{}", path: "/reject"), 409, "payload_mismatch", retryable: false)
      expectRefused(try await rig.order("a", path: "/retry"), 409, "outcome_unknown", retryable: true)
      expectRefused(
        try await rig.order("a", body: "{}", path: "/retry"), 409, "payload_mismatch", retryable: false)
      expectRefused(try await rig.order("a", path: "/small"), 409, "response_not_kept", retryable: false)
      gate.open()
      _ = try await running
      var line = try await next(rig, "brief")
      while line.contains("recorded response") { line = try await next(rig, "brief") }
      #expect(line.contains("gets 409 key_expired") && line.contains(mismatch), "\(line)")
      expectRefused(try await rig.order("a", path: "/brief"), 409, "key_expired", retryable: false)
      expectRefused(
        try await rig.order("a", body: "{}", path: "/brief"), 409, "payload_mismatch", retryable: false)
    }
  }

  @Test func `an item of a batch tells what its next delivery gets`() async throws {
    let batch = "{items: /orders, key: /id, results: /results}"
    let (kept, lost) = ("gets the recorded response, ", "gets 409 response_not_kept until 20")
    try await Rig.run(Configuration(route: ["batch": batch])) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      let directory = TemporaryDirectory()
      for (key, status, content, text) in [
        ("a", 200, "done", lost), ("b", 204, "", lost), ("c", 201, #"{"ok":true}"#, kept + "201, until 20"),
        ("d", 422, "no", kept + "422, until 20"),
      ] {
        let body = #"{"orders":[{"id":"\#(key)"}]}"#
        #expect(try await rig.order(nil, body: body).status == 502)
        try content.write(toFile: directory.file("body"), atomically: true, encoding: .utf8)
        let applied = ["resolve", "--applied", "--status", "\(status)", "--body", directory.file("body")]
        for command in [applied, ["show"]] {
          let shown = try await rig.key(command + Rig.selection(key)).output
          #expect(shown.contains(text), "\(shown)")
          #expect(shown.contains("in a batch all of whose items have it") == (status == 422), "\(shown)")
        }
        let next = try await rig.order(nil, body: body)
        if text == lost {
          expectRefused(next, 409, "response_not_kept", retryable: false)
        } else {
          #expect(next.status == status, "\(next.text)")
        }
      }
      #expect(rig.backend.requests.count == 4)
    }
  }

  @Test func `an expired record does not say that a lost request was completed`() async throws {
    let route = ["retention": "1s", "remember": "1h", "unknown_retention": "2s"]
    try await Rig.run(Configuration(upstream: ["settle": "1s"], route: route)) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      #expect(try await rig.order("a").status == 502)
      _ = try await rig.order("a") { $0.problem?.code == "key_expired" }
      let shown = try await rig.key(["show"] + Rig.selection("a")).output
      let text = "gets 409 key_expired: the time for which its outcome was kept is over"
      #expect(shown.contains(text) && !shown.contains("completed"), "\(shown)")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a record tells its fields, its recipe and its deliveries, and an outcome that a person stated`(
    store: StoreKind
  ) async throws {
    let route = ["fingerprint": "{ignore: [/sent_at], explain: true}"]
    try await Rig.run(
      Configuration(store: store, top: ["workers": "1"], upstream: ["settle": "100ms"], route: route)
    ) { rig in
      rig.backend.on(
        "/v1/orders", inTurn: [Reply(201, [("X-Order", "7"), ("Content-Type", "text/plain")]), .unanswered])
      expectExecuted(try await rig.order("a"))
      expectReplayed(try await rig.order("a"), 201)
      expectRefused(try await rig.order("a", body: "{}"), 409, "payload_mismatch", retryable: false)
      _ = try await rig.semel.requests(atLeast: 3)
      let real = try await rig.key(["show"] + Rig.selection("a")).output
      for part in [
        #""deliveries" : 3"#, #""last_status" : 409"#, #""last_seen" : "20"#,
        #""recipe" : "2;auto;i=/sent_at""#,
        #""x-order""#,
      ] {
        #expect(real.contains(part), "\(part) in \(real)")
      }
      #expect(!real.contains("stated"), "\(real)")

      #expect(try await rig.order("b").status == 502)
      let applied =
        ["resolve", "--applied", "--status", "201", "--header", "X-Order: 8"] + Rig.selection("b")
      let stated = try await rig.key(applied).output
      #expect(stated.contains(#""stated" : true"#) && stated.contains(#""x-order""#), "\(stated)")
      #expect(stated.contains(#""recipe" : "2;auto;i=/sent_at""#), "\(stated)")
      let amended = try await rig.key(["resolve", "--not-applied", "--amend"] + Rig.selection("b")).output
      #expect(amended.contains(#""stated" : true"#) && amended.contains(#""released""#), "\(amended)")
      // The next run has the outcome of the backend again.
      rig.backend.on("/v1/orders") { _ in Reply(201) }
      expectExecuted(try await rig.order("b"))
      let run = try await rig.key(["show"] + Rig.selection("b")).output
      #expect(run.contains(#""attempt" : 2"#) && !run.contains("stated"), "\(run)")
    }
  }
}

import Foundation
import TestSupport
import Testing

/// The part of a response that is recorded, and the age of its replays.
struct RecordedFieldTests {
  private static let fields = [
    ("RateLimit", "\"default\";r=5;t=9"), ("RateLimit-Policy", "\"default\";q=10"),
    ("X-RateLimit-Remaining", "5"),
    ("x-rate-limit-reset", "9"), ("X-Request-Id", "r1"), ("X-Trace-A", "t1"), ("X-Kept", "k1"),
    ("Location", "/v1/orders/7"), ("Cache-Control", "max-age=60"),
  ]

  private func expectFields(_ names: [String], in response: ReceivedResponse, areThere: Bool) {
    for name in names { #expect((response[name] != nil) == areThere, "\(name) in \(response.fields)") }
  }

  @Test(arguments: StoreKind.allCases)
  func `what states a client's rate is passed on, and not replayed`(store: StoreKind) async throws {
    let rates = ["RateLimit", "RateLimit-Policy", "X-RateLimit-Remaining", "X-Rate-Limit-Reset"]
    try await Rig.run(Configuration(store: store)) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, Self.fields, body: "made") }
      let first = try await rig.order("k")
      expectExecuted(first)
      expectFields(rates + ["X-Request-Id", "X-Kept"], in: first, areThere: true)
      for _ in 1...2 {
        let replay = try await rig.order("k")
        expectReplayed(replay, of: first)
        expectFields(rates, in: replay, areThere: false)
        expectFields(["X-Request-Id", "X-Trace-A", "X-Kept", "Location"], in: replay, areThere: true)
        try await rig.semel.kill()
        try await rig.semel.start()
      }
    }
  }

  @Test func `a route chooses the fields that its replays leave out`() async throws {
    let replay = "{drop: [X-Request-Id, 'X-Trace-*', Location], keep: [RateLimit, 'X-RateLimit-*']}"
    try await Rig.run(Configuration(route: ["replay": replay])) { rig in
      rig.backend.on("/v1/orders") { _ in
        var reply = Reply(201, Self.fields, body: "made", framing: .chunked)
        reply.trailers = [("X-Request-Id", "r1"), ("X-Sum", "7")]
        return reply
      }
      let first = try await rig.order("k")
      expectExecuted(first)
      expectFields(["X-Request-Id", "X-Trace-A", "Location"], in: first, areThere: true)
      let replay = try await rig.order("k")
      expectReplayed(replay, of: first)
      expectFields(
        ["X-Request-Id", "X-Trace-A", "Location", "RateLimit-Policy", "X-Rate-Limit-Reset"], in: replay,
        areThere: false)
      expectFields(["RateLimit", "X-RateLimit-Remaining", "X-Kept"], in: replay, areThere: true)
      #expect(replay.trailers.map(\.name) == ["X-Sum"], "\(replay.trailers)")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a replay states its age, so that its freshness does not begin anew`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      rig.backend.on("/v1/fresh") { _ in Reply(201, Self.fields, body: "made") }
      rig.backend.on("/v1/old") { _ in Reply(201, Self.fields + [("Age", "700")], body: "made") }
      for (path, age) in [("/v1/fresh", 0), ("/v1/old", 700)] {
        let first = try await rig.order("k", path: path)
        #expect(first["Age"] == (age == 0 ? nil : "700"))
        // It grows by the second.
        let replay = try await Rig.repeated(until: { $0["Age"].flatMap { Int($0) } ?? 0 > age }) {
          try await rig.order("k", path: path)
        }
        expectReplayed(replay, of: first)
        #expect(replay["Age"].flatMap { Int($0) } ?? 0 < age + 60, "\(replay.fields)")
      }
      try await rig.semel.kill()
      try await rig.semel.start()
      // Also what the store gives back.
      let stored = try await rig.order("k", path: "/v1/old")
      expectReplayed(stored, 201)
      #expect(stored["Age"].flatMap { Int($0) } ?? 0 > 700, "\(stored.fields)")
      #expect(try await rig.order("k", path: "/v1/fresh")["Age"].flatMap { Int($0) } ?? 700 < 600)
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a route may record the status alone, and warns of nothing`(store: StoreKind) async throws {
    let secret = Reply(201, Self.fields + [("Cache-Control", "no-store")], body: "hunter2")
    try await Rig.run(Configuration(store: store, route: ["record": "status"])) { rig in
      rig.backend.on("/v1/orders") { _ in secret }
      for key in ["a", "b"] {
        let first = try await rig.order(key)
        expectExecuted(first, isKept: false)
        #expect(first.text == "hunter2")
        let again = try await rig.order(key)
        expectRefused(again, 409, "response_not_kept", retryable: false)
        #expect(again.problem?.originalStatus == 201)
        #expect(again.problem?.location == "/v1/orders/7")
      }
      #expect(rig.backend.requests.count == 2)
      _ = try await rig.semel.requests(atLeast: 4)
      for words in ["recorded without their bodies", "recorded in clear", "hunter2"] {
        #expect(!rig.semel.process.output.contains(words), "\(words)")
      }
      #expect(
        try await rig.semel.counter(
          "semel_responses_not_kept_total", label: #"route="orders",why="too_large""#) == 0)
    }
  }

  @Test func `a route that records the status alone keeps no body that somebody states`() async throws {
    let reconcile = #"{path: "/lookup?id={request_id}", applied: [200], absent: {json: {/code: none}}}"#
    let route = ["record": "status", "on_unknown": "reconcile", "reconcile": reconcile]
    try await Rig.run(Configuration(upstream: ["settle": "1s"], route: route)) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      rig.backend.on("/lookup") { _ in Reply(200, body: "hunter2") }
      #expect(try await rig.order("k").status == 502)
      let adopted = try await rig.order("k") { $0.problem?.code != "outcome_unknown" }
      expectRefused(adopted, 409, "response_not_kept", retryable: false)
      let statement = ["put", "--applied", "--status", "201"]
      let order = ["-H", "Content-Type: application/json", "-d", #"{"amount":1999}"#] + Rig.selection("put")
      let directory = TemporaryDirectory()
      try "hunter2".write(toFile: directory.file("body"), atomically: true, encoding: .utf8)
      let refused = try await rig.key(statement + ["--body", directory.file("body")] + order, ends: .code(1))
      #expect(refused.errors.contains("record: status"), "\(refused.errors)")
      _ = try await rig.key(statement + order)
      expectRefused(try await rig.order("put"), 409, "response_not_kept", retryable: false)
    }
  }

  @Test(arguments: [true, false])
  func `a response that no cache may store warns once for its route, unless records are sealed`(
    isSealed: Bool
  )
    async throws
  {
    let directory = TemporaryDirectory()
    try "a secret that seals recorded responses".write(
      toFile: directory.file("secret"), atomically: true, encoding: .utf8)
    let members = isSealed ? ["encryption": "{secret_files: ['\(directory.file("secret"))']}"] : [:]
    try await Rig.run(Configuration(storeMembers: members)) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, [("Cache-Control", "private, no-store")], body: "x") }
      for key in ["a", "b", "c"] {
        let first = try await rig.order(key)
        expectExecuted(first)
        expectReplayed(try await rig.order(key), of: first)
      }
      _ = try await rig.semel.requests(atLeast: 6)
      let count = rig.semel.process.output.split(separator: "\n").count {
        $0.contains("are recorded in clear")
      }
      #expect(count == (isSealed ? 0 : 1))
    }
  }
}

import Foundation
import TestSupport
import Testing

/// Records as an operator sees and changes them, by the admin listener and by `semel key`.
struct RecordTests {
  /// Loses the response of an order: its outcome is unknown from then on.
  private func lose(_ rig: Rig, _ key: String) async throws {
    rig.backend.on("/v1/orders") { request in
      Reply(
        body: #"{"order":\#(request.number)}"#, ending: request.number == 1 ? .closedWithoutResponse : .whole)
    }
    expectRefused(try await rig.order(key), 502, "outcome_unknown", retryable: false)
  }

  private static let held = ["on_unknown": "hold"]

  /// A record as `semel key show` prints it, but for its age.
  private func shown(_ rig: Rig, _ selection: [String]) async throws -> String {
    let lines = try await rig.key(["show"] + selection).output.split(separator: "\n")
    #expect(lines.contains { $0.contains(#""age_seconds" : "#) })
    return lines.filter { !$0.contains(#""age_seconds""#) }.joined(separator: "\n")
  }

  @Test(arguments: StoreKind.allCases)
  func `a record is found by route, caller and key, or by its id`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      expectExecuted(try await rig.order("a"))
      let id = try #require(rig.backend.requests[0].requestID)
      let shown = try await self.shown(rig, Rig.selection("a"))
      #expect(shown.contains(#""id" : "\#(id)""#))
      #expect(shown.contains(#""state" : "completed""#))
      #expect(shown.contains(#""status" : 201"#))
      #expect(shown.contains(#""route" : "orders""#) && shown.contains(#""key_digest" : "#))
      #expect(try await self.shown(rig, ["--id", id]) == shown)
      // The key as its header carries it, quoted.
      #expect(try await self.shown(rig, Rig.selection(#""a""#)) == shown)
      let impossible = try await rig.key(["show"] + Rig.selection("a,b"), ends: .code(1))
      #expect(impossible.errors.contains("comma"), "\(impossible.errors)")
      #expect(try await rig.key(["show"] + Rig.selection("b")).output.contains(#""state" : "absent""#))
      let missing = try await rig.key(
        ["show", "--route", "orders", "--key", "a", "--path", "/v1/orders"], ends: .code(1))
      #expect(missing.errors.contains("give method"))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `an unknown outcome resolved as applied is replayed`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: Self.held)) { rig in
      try await lose(rig, "a")
      let listed = try await rig.key(["list", "--state", "unknown"]).output
      #expect(listed.contains(try #require(rig.backend.requests[0].requestID)))
      let body = TemporaryDirectory()
      try #"{"order":"by hand"}"#.write(toFile: body.file("body"), atomically: true, encoding: .utf8)
      try await rig.key(
        [
          "resolve", "--applied", "--status", "201", "--header", "Content-Type: application/json", "--body",
          body.file("body"),
        ] + Rig.selection("a"))
      let replay = try await rig.order("a")
      expectReplayed(replay, 201)
      #expect(replay.text == #"{"order":"by hand"}"#)
      #expect(replay["Content-Type"] == "application/json")
      #expect(rig.backend.requests.count == 1)
      try await rig.semel.process.line(containing: #""message":"audit","action":"resolve""#)
      let again = try await rig.key(["resolve", "--not-applied"] + Rig.selection("a"), ends: .code(1))
      #expect(again.errors.contains("this record is completed"))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a wrong resolution is amended, on every node`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: Self.held)) { rig in
      let second = store == .redis ? try await rig.secondNode() : nil
      try await lose(rig, "a")
      try await rig.key(["resolve", "--applied", "--status", "500"] + Rig.selection("a"))
      // Kept in the caches of both.
      expectReplayed(try await rig.order("a"), 500)
      expectReplayed(try await rig.order("a", at: second), 500)
      let again = ["resolve", "--applied", "--status", "201"] + Rig.selection("a")
      #expect(try await rig.key(again, ends: .code(1)).errors.contains("only an unknown outcome"))
      try await rig.key(again + ["--amend"])
      try await rig.semel.process.line(containing: #""amend":"true""#)
      expectReplayed(try await rig.order("a"), 201)
      let deadline = ContinuousClock.now + .seconds(20)
      var replay = try await rig.order("a", at: second)
      while replay.status != 201, ContinuousClock.now < deadline {
        replay = try await rig.order("a", at: second)
      }
      expectReplayed(replay, 201)
      expectExecuted(try await rig.order("b"))
      let refused = try await rig.key(
        ["resolve", "--amend", "--not-applied"] + Rig.selection("b"), ends: .code(1))
      #expect(refused.errors.contains("only what an operator resolved can be amended"))
      #expect(rig.backend.requests.count == 2)
      try await second?.kill()
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `an unknown outcome resolved as not applied lets the next delivery run`(store: StoreKind) async throws
  {
    try await Rig.run(Configuration(store: store, route: Self.held)) { rig in
      try await lose(rig, "a")
      expectRefused(try await rig.order("a"), 409, "outcome_unknown", retryable: false)
      try await rig.key(["resolve", "--not-applied"] + Rig.selection("a"))
      expectExecuted(try await rig.order("a"))
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2"])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a resolution is bound to the attempt that it names`(store: StoreKind) async throws {
    let configuration = Configuration(
      store: store, upstream: ["settle": "0s"], route: ["on_unknown": "retry"])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders", inTurn: [.unanswered, .unanswered, Reply(201)])
      for _ in 1...2 {
        expectRefused(try await rig.order("a"), 502, "outcome_unknown", retryable: true)
      }
      let id = try #require(rig.backend.requests[0].requestID)
      let earlier = try await rig.key(
        ["resolve", "--not-applied", "--attempt", "1"] + Rig.selection("a"), ends: .code(1))
      #expect(
        earlier.errors.contains("attempt 1 is not the last one, attempt 2 is")
          && earlier.errors.contains("this record is unknown"), "\(earlier.errors)")
      try await rig.semel.process.line(containing: #""last_attempt":2"#)
      for (attempt, status) in [("1", 409), ("3", 409), ("0", 400), ("\"2\"", 400)] {
        let refused = try await rig.semel.admin.send(
          "POST", "/v1/records/\(id)/resolve", [("Content-Type", "application/json")],
          body: #"{"outcome":"not_applied","attempt":\#(attempt)}"#)
        #expect(refused.status == status && refused.text.contains("attempt"), "\(refused.text)")
        let stated = refused.text.contains(#""attempt":2"#) && refused.text.contains(#""state":"unknown""#)
        #expect(stated == (status == 409), "\(refused.text)")
      }
      #expect(try await rig.key(["show", "--id=\(id)"]).output.contains(#""state" : "unknown""#))
      try await rig.key(["resolve", "--not-applied", "--attempt", "2", "--id=\(id)"])
      expectExecuted(try await rig.order("a"))
      #expect(rig.backend.requests.map(\.attempt) == ["1", "2", "3"])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a forgotten key runs again, although its outcome was cached in the process`(store: StoreKind)
    async throws
  {
    try await Rig.run(Configuration(store: store)) { rig in
      let first = try await rig.order("a")
      expectReplayed(try await rig.order("a"), of: first)
      try await rig.key(["forget"] + Rig.selection("a"))
      expectExecuted(try await rig.order("a"))
      #expect(rig.backend.requests.count == 2)
      try await rig.semel.process.line(containing: #""message":"audit","action":"forget""#)
      try await rig.key(["forget"] + Rig.selection("never"), ends: .code(1))
    }
  }

  @Test(arguments: StoreKind.allCases, ["resolve", "forget"])
  func `freeing a record whose request may be at work warns, and what contradicts it is logged`(
    store: StoreKind, command: String
  ) async throws {
    let configuration = Configuration(
      store: store, top: ["log": "{level: error}"],
      upstream: ["response_timeout": "3s", "settle": "60s"])
    try await Rig.run(configuration) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      expectRefused(try await rig.order("a"), 504, "outcome_unknown", retryable: true)
      let words = command == "resolve" ? ["resolve", "--not-applied"] : ["forget"]
      let freed = try await rig.key(words + Rig.selection("a"))
      #expect(
        freed.errors.contains("warning: the backend may still be at work on attempt 1"), "\(freed.errors)")
      try await rig.semel.process.line(containing: #""message":"audit","action":"\#(command)""#)
      gate.open()
      let line = try await rig.semel.process.line(
        containing: "a response came after an operator had freed its record")
      #expect(line.contains(#""attempt":1"#) && line.contains(#""status":"201""#), "\(line)")
      expectExecuted(try await rig.order("a"))
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `forgetting a record whose request runs warns`() async throws {
    try await Rig.run { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      async let first = rig.order("a")
      try await rig.backend.arrived(1)
      let forgotten = try await rig.key(["forget"] + Rig.selection("a"))
      #expect(forgotten.errors.contains("attempt 1 was still running"), "\(forgotten.errors)")
      gate.open()
      _ = try await first
      #expect(try await rig.key(["forget"] + Rig.selection("b"), ends: .code(1)).errors.contains("no record"))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `an owner of a forgotten record is not told another payload's outcome`(
    store: StoreKind
  ) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { $0.text == "first" ? Reply(gate: gate) : Reply(body: "second") }
      async let first = rig.order("a", body: "first")
      try await rig.backend.arrived(1)
      try await rig.key(["forget"] + Rig.selection("a"))
      let second = try await rig.order("a", body: "second")
      expectExecuted(second)
      gate.open()
      expectRefused(try await first, 409, "outcome_unknown", retryable: false)
      expectReplayed(try await rig.order("a", body: "second"), of: second)
      #expect(try await rig.order("a", body: "first").problem?.code == "payload_mismatch")
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test func `ids and keys may begin with a hyphen`() async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("-abc"))
      let shown = try await rig.key(["show"] + Rig.selection("-abc")).output
      #expect(shown.contains(#""state" : "completed""#))
      let id = "-" + String(repeating: "A", count: 42)
      #expect(try await rig.key(["show", "--id", id]).output.contains(#""state" : "absent""#))
      #expect(try await rig.key(["forget", "--id", id], ends: .code(1)).errors.contains("no record \(id)"))
    }
  }

  @Test func `a change without a reply is in the audit log`() async throws {
    // Longer than the command takes to begin: afterwards the store counts as lost, and the command is not sent.
    let configuration = Configuration(
      store: .redis, storeMembers: ["timeout": "3s"], route: ["lease": "10s"])
    try await Rig.run(configuration) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      _ = try await rig.order("a")
      let id = try #require(rig.backend.requests[0].requestID)
      let redis = try #require(rig.redis)
      redis.freeze()
      let resolution = ["resolve", "--id", id, "--not-applied"]
      #expect(try await rig.key(resolution, ends: .code(1)).errors.contains("look before you repeat it"))
      redis.thaw()
      let line = try await rig.semel.process.line(containing: #""action":"resolve""#)
      #expect(line.contains(#""failed":"whether it was done is not known"#) && line.contains(id), "\(line)")
    }
  }

  @Test func `a command that only reads does not leave open whether it was done`() async throws {
    // Longer than the command takes to begin.
    let configuration = Configuration(
      store: .redis, storeMembers: ["timeout": "3s"], route: ["lease": "10s"])
    try await Rig.run(configuration) { rig in
      _ = try await rig.order("a")
      let id = try #require(rig.backend.requests[0].requestID)
      rig.redis?.freeze()
      let shown = try await rig.key(["show", "--id=\(id)"], ends: .code(1))
      #expect(shown.errors.contains("did not reply"), "\(shown.errors)")
      #expect(!shown.errors.contains("look before you repeat it"), "\(shown.errors)")
      rig.redis?.thaw()
    }
  }

  @Test func `a change that cannot be published to other nodes carries a warning`() async throws {
    let configuration = Configuration(
      store: .redis, redisArguments: ["--user", "quiet", "on", ">word", "~*", "&*", "+@all", "-publish"],
      redisUser: "quiet:word@")
    try await Rig.run(configuration) { rig in
      var other = configuration
      other.redisUser = ""
      let ports = SemelProcess.Ports()
      let second = try await SemelProcess(
        ports: ports,
        configuration: other.text(ports: ports, backend: rig.backend.port, storePath: "", redis: rig.redis))
      let first = try await rig.order("a", at: second)
      expectReplayed(try await rig.order("a", at: second), of: first)
      let forgotten = try await rig.key(["forget"] + Rig.selection("a"))
      #expect(
        forgotten.output.contains(#""warning" : "other nodes could not be notified"#), "\(forgotten.output)")
      #expect(forgotten.errors.contains("semel: warning: other nodes could not be notified"))
      #expect(forgotten.errors.contains("+publish"))
      expectReplayed(try await rig.order("a", at: second), of: first)

      try rig.redis?.command(["ACL", "SETUSER", "quiet", "+publish"])
      try await rig.key(["forget"] + Rig.selection("a"), ends: .code(1))
      let again = try await rig.order("a", at: second) { $0.idempotencyStatus == "executed" }
      expectExecuted(again)
      let repeated = try await rig.key(["forget"] + Rig.selection("a"))
      #expect(!repeated.output.contains("warning") && repeated.errors.isEmpty, "\(repeated.errors)")
      try await second.kill()
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `an invalid cursor is the caller's error alone`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      for cursor in ["nonsense", "99999999999999999999", "-1"] {
        let refused = try await rig.semel.admin.send("GET", "/v1/records?cursor=\(cursor)")
        #expect(refused.status == 400 && refused.text.contains("begin without it"), "\(refused.text)")
      }
      #expect(try await rig.semel.counter("semel_store_errors_total") == 0)
      #expect(!rig.semel.process.output.contains("store commands fail"))
    }
  }

  @Test func `a record of a route with one path and one method is found without naming them`() async throws {
    let configuration = Configuration(route: ["match": "{methods: [POST], path: /v1/orders}"])
    try await Rig.run(configuration) { rig in
      expectExecuted(try await rig.order("a"))
      let shown = try await rig.key([
        "show", "--route", "orders", "--key", "a", "--caller", "header:Authorization=Bearer alice",
        "--host",
        "orders.example",
      ])
      #expect(shown.output.contains(try #require(rig.backend.requests[0].requestID)))
      #expect(shown.output.contains(#""state" : "completed""#))
    }
  }

  @Test func `a resolution may set a cookie only if the route keeps cookies`() async throws {
    for (keeps, exit) in [("drop", ManagedProcess.Exit.code(1)), ("keep", .code(0))] {
      var route = Self.held
      route["set_cookie"] = keeps
      try await Rig.run(Configuration(route: route)) { rig in
        try await lose(rig, "a")
        let resolved = try await rig.key(
          ["resolve", "--applied", "--status", "201", "--header", "Set-Cookie: a=b"] + Rig.selection("a"),
          ends: exit)
        guard keeps == "drop" else {
          return #expect(try await rig.order("a")["Set-Cookie"] == "a=b")
        }
        #expect(resolved.errors.contains("route orders keeps no Set-Cookie"), "\(resolved.errors)")
        expectRefused(try await rig.order("a"), 409, "outcome_unknown", retryable: false)
      }
    }
  }

  @Test func `a record in flight is listed with its age`() async throws {
    try await Rig.run { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(body: "{}", gate: gate) }
      async let order = rig.order("a")
      try await rig.backend.log.until("the order is there") { $0.begun > 0 ? () : nil }
      let list = try await rig.semel.admin.send("GET", "/v1/records?state=in_flight")
      #expect(list.status == 200)
      #expect(list.text.contains(#""state":"in_flight""#))
      #expect(list.text.contains(#""age_seconds""#))
      #expect(try await rig.semel.admin.send("GET", "/v1/records?state=unknown").text == "{\"records\":[]}\n")
      gate.open()
      _ = try await order
    }
  }
}

import Foundation
import TestSupport
import Testing

/// The way from a log line to a record and from a key to its records, and the causes of unknown outcomes.
struct AttributionTests {
  /// The access log's entries so far, as soon as there are so many.
  private func requests(
    _ rig: Rig, _ count: Int, at node: SemelProcess? = nil
  ) async throws -> [[String: String]] {
    try await (node ?? rig.semel).process.state.until("\(count) requests in the log") {
      state -> [[String: String]]? in
      let entries = state.output.split(separator: UInt8(ascii: "\n")).compactMap {
        (try? JSONSerialization.jsonObject(with: Data($0)) as? [String: Any])
      }
      let found = entries.filter { $0["message"] as? String == "request" }
      return found.count >= count ? found.map { $0.mapValues { "\($0)" } } : nil
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `each log line of a keyed request names record, route and path template`(store: StoreKind) async throws
  {
    try await Rig.run(Configuration(store: store)) { rig in
      expectExecuted(try await rig.order("a"))
      expectReplayed(try await rig.order("a"), 201)
      expectRefused(try await rig.order("a", body: "{}"), 409, "payload_mismatch", retryable: false)
      _ = try await rig.order(nil, path: "/open")
      let entries = try await requests(rig, 4)
      let id = try #require(rig.backend.requests[0].requestID)
      #expect(entries.prefix(3).allSatisfy { $0["record"] == id && $0["route"] == "orders" }, "\(entries)")
      #expect(entries.prefix(3).allSatisfy { $0["path"] == "/v1/**" }, "\(entries)")
      #expect(entries[3]["record"] == nil && entries[3]["path"] == nil, "\(entries)")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a lost outcome is a warning with its cause, and the list attributes it`(store: StoreKind) async throws
  {
    let upstream = ["response_timeout": "500ms", "settle": "1s"]
    try await Rig.run(Configuration(store: store, upstream: upstream)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/slow") { _ in Reply(gate: gate) }
      rig.backend.on("/v1/reset") { _ in .unanswered }
      rig.backend.on("/v1/gateway") { _ in Reply(504, body: "late") }
      for (path, cause) in [("slow", "time_out"), ("reset", "connection_lost"), ("gateway", "status")] {
        _ = try await rig.order(path, path: "/v1/\(path)")
        let id = try #require(rig.backend.requests.last?.requestID)
        let line = try await rig.semel.process.line(containing: #""cause":"\#(cause)""#)
        for member in [#""level":"warning""#, #""record":"\#(id)""#, #""route":"orders""#] {
          #expect(line.contains(member), "\(member) in \(line)")
        }
        let rows = try await rig.key(["list", "--state", "unknown"]).output.split(separator: "\n")
        let row = try #require(rows.first { $0.hasSuffix(id) }, "\(rows)")
        #expect(row.contains(" orders ") && row.contains(" \(cause) "), "\(row)")
      }
      gate.open()
      let json = try await rig.key(["list", "--json", "--route", "orders"]).output
      #expect(json.contains(#""key_digest":"#) && json.contains(#""node":"#), "\(json)")
      #expect(try await rig.key(["list", "--route", "none", "--json"]).output.isEmpty)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a key is found for every caller, without anyone's token`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      expectExecuted(try await rig.order("a"))
      expectReplayed(try await rig.order("a"), 201)
      expectExecuted(try await rig.order("a", caller: "Bearer bob"))
      expectExecuted(try await rig.order("b"))
      let ids = rig.backend.requests.compactMap(\.requestID)
      let found = try await rig.key(["find", "--key", "a", "--route", "orders"]).output
      #expect(found.contains(ids[0]) && found.contains(ids[1]) && !found.contains(ids[2]), "\(found)")
      #expect(found.contains("2 records of 2 callers"), "\(found)")
      // Quoted, as its header may carry it.
      #expect(try await rig.key(["find", "--key", #""a""#]).output.contains(ids[0]))
      let entries = try await requests(rig, 4)
      let (alice, digest) = (try #require(entries[0]["caller"]), try #require(entries[0]["key"]))
      #expect(found.contains("the log shows this key as key=\(digest)"), "\(found)")
      let hers = try await rig.key(["find", "--caller-digest", alice]).output
      #expect(hers.contains(ids[0]) && !hers.contains(ids[1]) && hers.contains(ids[2]), "\(hers)")
      let both = try await rig.key(["find", "--key-digest", digest, "--caller-digest", alice]).output
      #expect(both.contains("1 record of 1 caller"), "\(both)")
      let none = try await rig.key(["find", "--key", "never-seen"]).output
      #expect(
        none.contains("there is no such record")
          && none.contains("searched: the whole store, and the latest 4 events"), "\(none)")
      #expect(!(rig.semel.process.output + rig.semel.process.errors).contains("never-seen"))
      let wrong = try await rig.key(["find", "--key", "a", "--route", "none"], ends: .code(1))
      #expect(wrong.errors.contains("there is no route none"))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `records name their origin after a restart, whichever node made them`(store: StoreKind) async throws {
    let upstream = ["response_timeout": "500ms", "settle": "1s"]
    try await Rig.run(Configuration(store: store, upstream: upstream, isAppendOnly: true)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/slow") { _ in Reply(gate: gate) }
      let other = store == .redis ? try await rig.secondNode() : nil
      expectExecuted(try await rig.order("a", at: other))
      _ = try await rig.order("a", caller: "Bearer bob", path: "/v1/slow", at: other)
      let ids = rig.backend.requests.compactMap(\.requestID)
      let entries = try await requests(rig, 2, at: other)
      let (alice, key) = (try #require(entries[0]["caller"]), try #require(entries[0]["key"]))
      let bob = try #require(entries[1]["caller"])
      // Nobody has seen these requests who lives on.
      try await other?.kill()
      try await rig.semel.kill()
      gate.open()
      try await rig.semel.start()

      let rows = try await rig.key(["list", "--route", "orders"]).output.split(separator: "\n")
      let row = try #require(rows.first { $0.hasSuffix(ids[1]) }, "\(rows)")
      for part in [" orders ", " \(key) ", " \(bob) ", " time_out "] {
        #expect(row.contains(part), "\(part) in \(row)")
      }
      let json = try await rig.key(["list", "--json"]).output
      for member in ["first_seen", "age_seconds", "node", "attempt"] {
        #expect(json.contains(#""\#(member)":"#), "\(member) in \(json)")
      }
      let found = try await rig.key(["find", "--key", "a"]).output
      #expect(found.contains("the log shows this key as key=\(key)"), "\(found)")
      #expect(found.contains("2 records of 2 callers"), "\(found)")
      #expect(ids.allSatisfy { found.contains($0) }, "\(found)")
      let hers = try await rig.key(["find", "--caller-digest", alice, "--json"]).output
      #expect(hers.contains(ids[0]) && !hers.contains(ids[1]), "\(hers)")
      let shown = try await rig.key(["show", "--id", ids[1]]).output
      for part in [#""cause" : "time_out""#, #""route" : "orders""#, #""key_digest" : "\#(key)""#] {
        #expect(shown.contains(part), "\(part) in \(shown)")
      }
      #expect(shown.contains("until a late response or `semel key resolve` ends it"), "\(shown)")
      let mistyped = try await rig.key(["list", "--route", "order"])
      let advice = "names the route order; there are some of orders"
      #expect(mistyped.errors.contains(advice), "\(mistyped.errors)")
      let cut = try await rig.key(["find", "--key-digest", "60a9"], ends: .code(1))
      #expect(cut.errors.contains("eight hexadecimal digits"), "\(cut.errors)")
      let bulk = ["resolve", "--not-applied", "--route", "orders", "--older-than", "0s", "--yes"]
      #expect(try await rig.key(bulk).output.contains("1 resolved"))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a node that died is the cause of an unknown outcome`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, isAppendOnly: true)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      let connection = try await RawClient(port: rig.semel.ports.proxy)
      try await connection.send(Rig.orderText("a"))
      try await rig.backend.arrived(1)
      let running = try await rig.key(["list"]).output
      #expect(running.contains("in_flight") && running.contains(" orders "), "\(running)")
      try await rig.semel.kill()
      gate.open()
      try await rig.semel.start()
      // It waits for the end of the lease.
      expectRefused(try await rig.order("a"), 409, "outcome_unknown", retryable: true)
      let unknown = try await rig.key(["list", "--state", "unknown"]).output
      #expect(unknown.contains(" lease_lapsed ") && unknown.contains(" orders "), "\(unknown)")
    }
  }

  @Test func `each item of a batch names its origin`() async throws {
    let members = "{items: /orders, key: /id, results: /results}"
    try await Rig.run(Configuration(route: ["batch": members])) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      _ = try await rig.order(nil, body: #"{"orders":[{"id":"a"},{"id":"b"}]}"#)
      let json = try await rig.key(["list", "--state", "unknown", "--json"]).output
      let rows = json.split(separator: "\n")
      #expect(rows.count == 2 && rows.allSatisfy { $0.contains(#""route":"orders""#) }, "\(json)")
      #expect(rows.allSatisfy { $0.contains(#""cause":"connection_lost""#) }, "\(json)")
      let found = try await rig.key(["find", "--key", "a"]).output
      #expect(found.contains("1 record of 1 caller"), "\(found)")
      let bulk = ["resolve", "--not-applied", "--route", "orders", "--older-than", "0s", "--yes"]
      #expect(try await rig.key(bulk).output.contains("2 resolved"))
    }
  }

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
      #expect(try await next("running").contains("waits up to 10 s for the response of attempt 1"))
      gate.open()
      _ = try await running.response()
    }
  }
}

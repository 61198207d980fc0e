import Foundation
import TestSupport
import Testing

/// The fields that clients of several contracts look for in responses.
struct ClientFieldTests {
  @Test(arguments: [409, 425, 429, 503])
  func `the status for a delivery beside another one follows the route`(status: Int) async throws {
    let route = ["duplicates": "reject", "in_flight_status": "\(status)"]
    try await Rig.run(Configuration(route: route)) { rig in
      let gate = Gate()
      rig.backend.on("/v1/orders") { _ in Reply(gate: gate) }
      async let first = rig.order("k")
      try await rig.backend.arrived(1)
      let refused = try await rig.order("k")
      expectRefused(refused, status, "in_flight", retryable: true)
      expectRetryAfter(refused)
      gate.open()
      let executed = try await first
      expectReplayed(try await rig.order("k"), of: executed)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `responses repeat the key where the route does so`(store: StoreKind) async throws {
    let key = "{from: ['header:X-Order-Key', 'json:/id']}"
    try await Rig.run(Configuration(store: store, route: ["echo_key": "true", "key": key])) { rig in
      // A backend that repeats it, too.
      rig.backend.on("/v1/orders") { _ in Reply(201, [("x-order-key", "its own"), ("X-Other", "1")]) }
      let fields = Rig.fields(key: nil) + [("X-ORDER-Key", "\"k 1\"")]
      func order(_ body: String) async throws -> ReceivedResponse {
        try await rig.semel.client.send("POST", "/v1/orders", fields, body: body)
      }
      let first = try await order("{}")
      expectExecuted(first)
      let replay = try await order("{}")
      expectReplayed(replay, of: first)
      let refused = try await order(#"{"a":1}"#)
      expectRefused(refused, 409, "payload_mismatch", retryable: false)
      for response in [first, replay, refused] {
        #expect(response["X-Order-Key"] == "\"k 1\"", "\(response.fields)")
      }
      #expect(first["X-Other"] == "1" && replay["X-Other"] == "1")
      let inBody = try await rig.order(nil, body: #"{"id":"k2"}"#)
      expectExecuted(inBody)
      #expect(inBody["Idempotency-Key"] == "k2" && inBody["X-Order-Key"] == nil, "\(inBody.fields)")
      let missing = try await rig.order(nil, body: "{}")
      expectRefused(missing, 400, "key_missing", retryable: false)
      #expect(missing["Idempotency-Key"] == nil)
    }
  }

  @Test(arguments: ["keep", "drop", "{rename: X-Original-Key}"])
  func `the backend gets the key's field as the route says`(form: String) async throws {
    let configuration = Configuration(
      top: ["underscores": "pass"], route: ["forward_key": form, "idempotency": "optional"])
    try await Rig.run(configuration) { rig in
      let more = [("Idempotency_Key", "spelt"), ("X-Original-Key", "the client's own"), ("X-Other", "1")]
      expectExecuted(try await rig.order("k", more))
      let request = rig.backend.requests[0]
      #expect(request["Idempotency-Key"] == (form == "keep" ? "k" : nil), "\(request.fields)")
      #expect(request["X-Other"] == "1" && request.requestID != nil)
      switch form {
      case "keep": #expect(request["X-Original-Key"] == "the client's own")
      case "drop":
        #expect(request["Idempotency_Key"] == nil && request["X-Original-Key"] == "the client's own")
      default: #expect(request["Idempotency_Key"] == nil && request["X-Original-Key"] == "k")
      }
      // The record goes by the client's key all the same.
      expectReplayed(try await rig.order("k", more), 201)
      // A request without a key is left as it is.
      _ = try await rig.order(nil, [("X-Original-Key", "the client's own")])
      #expect(rig.backend.requests[1]["X-Original-Key"] == "the client's own")
    }
  }

  @Test func `no response repeats a key by default`() async throws {
    try await Rig.run { rig in
      let first = try await rig.order("k")
      #expect(first["Idempotency-Key"] == nil && first["Idempotent-Replayed"] == nil)
      #expect(try await rig.order("k")["Idempotency-Key"] == nil)
    }
  }

  @Test(arguments: ["adyen", "acp"])
  func `a first response says that it is no replay where the API's clients look for it`(profile: String)
    async throws
  {
    try await Rig.run(Configuration(route: ["profile": profile])) { rig in
      rig.backend.on("/v1/orders", inTurn: [Reply(503), Reply(201, body: "made")])
      let turnedAway = try await rig.order("k")
      #expect(turnedAway["Idempotent-Replayed"] == "false" && turnedAway.idempotencyStatus == "not-stored")
      let first = try await rig.order("k")
      #expect(first.idempotencyStatus == "executed" && first["Idempotent-Replayed"] == "false")
      let replay = try await rig.order("k")
      expectReplayed(replay, of: first)
      for response in [turnedAway, first, replay] { #expect(response["Idempotency-Key"] == "k") }
      let refused = try await rig.order("k", body: "{}")
      #expect(refused.status == 422)
      #expect(refused["Transient-Error"] == (profile == "adyen" ? "false" : nil))
      let code = profile == "adyen" ? #""code":"payload_mismatch""# : #""code":"idempotency_conflict""#
      #expect(refused.text.contains(code), "\(refused.text)")
    }
  }
}

/// OASIS Repeatable Requests 1.0.
struct RepeatabilityTests {
  private static func fields(_ id: String?, sent: Date?) -> [(String, String)] {
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = TimeZone(identifier: "GMT")
    format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return Rig.fields(key: nil) + (id.map { [("Repeatability-Request-ID", $0)] } ?? [])
      + (sent.map { [("Repeatability-First-Sent", format.string(from: $0))] } ?? [])
  }

  private static func order(
    _ rig: Rig, _ id: String?, sent: Date? = Date(), body: String = "{}", path: String = "/v1/orders"
  ) async throws -> ReceivedResponse {
    try await rig.semel.client.send("POST", path, fields(id, sent: sent), body: body)
  }

  private func expectResult(_ response: ReceivedResponse, _ status: Int, _ result: String?) {
    #expect(response.status == status, "\(response.text)")
    #expect(response["Repeatability-Result"] == result, "\(response.fields)")
  }

  @Test(arguments: StoreKind.allCases)
  func `a repeatable request runs once, and its result says so`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: ["profile": "repeatability"])) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, [("Repeatability-Result", "its own")], body: "made") }
      let first = try await Self.order(rig, "a")
      expectResult(first, 201, "accepted")
      let replay = try await Self.order(rig, "a")
      expectResult(replay, 201, "accepted")
      expectReplayed(replay, of: first)
      let other = try await Self.order(rig, "a", body: #"{"a":1}"#)
      expectResult(other, 400, "rejected")
      #expect(other.text.contains(#"{"error":{"code":"payload_mismatch""#), "\(other.text)")
      expectResult(try await Self.order(rig, "b", sent: nil), 400, "rejected")
      expectResult(try await Self.order(rig, nil), 400, "rejected")
      expectResult(
        try await Self.order(rig, "c", sent: Date().addingTimeInterval(-3 * 86_400)), 412, "rejected")
      #expect(rig.backend.requests.count == 1)
      // One that is not repeatable passes, and nothing is said of it.
      let passed = try await Self.order(rig, nil, sent: nil)
      #expect(passed.status == 201 && passed["Repeatability-Result"] == "its own")
    }
  }

  @Test func `nothing is said of a request that nobody knows to have run`() async throws {
    try await Rig.run(Configuration(route: ["profile": "repeatability", "duplicates": "reject"])) { rig in
      let gate = Gate()
      rig.backend.on("/v1/slow") { _ in Reply(gate: gate) }
      rig.backend.on("/v1/orders") { _ in .unanswered }
      expectResult(try await Self.order(rig, "a"), 502, nil)
      expectResult(try await Self.order(rig, "a"), 409, nil)
      async let first = Self.order(rig, "b", path: "/v1/slow")
      try await rig.backend.arrived(2)
      expectResult(try await Self.order(rig, "b", path: "/v1/slow"), 409, "accepted")
      gate.open()
      expectResult(try await first, 201, "accepted")
    }
  }

  @Test func `an id that has expired is a failed precondition`() async throws {
    let route = ["profile": "repeatability", "retention": "1s", "remember": "1h"]
    try await Rig.run(Configuration(route: route)) { rig in
      expectResult(try await Self.order(rig, "a"), 201, "accepted")
      let expired = try await Rig.repeated(until: { $0.status != 201 }) { try await Self.order(rig, "a") }
      expectResult(expired, 412, "rejected")
      #expect(expired.text.contains("key_expired"))
    }
  }

  @Test func `an id that no route takes is not implemented, if such ids are refused`() async throws {
    let configuration = Configuration(
      top: ["unmatched_keys": "refuse"], route: ["profile": "repeatability"])
    try await Rig.run(configuration) { rig in
      expectResult(try await Self.order(rig, "a", path: "/elsewhere"), 501, "rejected")
      #expect(rig.backend.requests.isEmpty)
    }
  }
}

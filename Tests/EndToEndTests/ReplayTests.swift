import Foundation
import TestSupport
import Testing

/// The first delivery runs, every other one gets its response.
struct ReplayTests {
  /// A response with fields that are recorded, and ones that never are.
  private static let reply = Reply(
    201,
    [
      ("Content-Type", "application/octet-stream"), ("Location", "/v1/orders/17"), ("ETag", #""v1""#),
      ("Link", "</a>; rel=a"), ("Link", "</b>; rel=b"), ("X-Empty", ""),
      ("Set-Cookie", "session=1"), ("Date", "Thu, 01 Jan 1970 00:00:00 GMT"), ("Server-Timing", "db;dur=53"),
      ("Age", "7"), ("Retry-After", "9"), ("x-should-retry", "true"),
      ("Alt-Svc", #"h3=":443""#), ("Connection", "X-Hop"), ("X-Hop", "1"), ("Keep-Alive", "timeout=5"),
    ], content: .bytes((0...255).map { UInt8($0) } + Array(repeating: 0, count: 5000)))

  private static let recorded = ["content-type", "location", "etag", "link", "x-empty"]

  private func recordedFields(_ response: ReceivedResponse) -> [String] {
    response.fields.filter { Self.recorded.contains($0.name.lowercased()) }.map { "\($0.name): \($0.value)" }
  }

  @Test(arguments: StoreKind.allCases)
  func `a second delivery gets the first one's response, byte for byte`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      rig.backend.on("/v1/orders") { _ in Self.reply }
      let first = try await rig.order("k")
      expectExecuted(first)
      guard case .bytes(let sent) = Self.reply.content else { return }
      #expect(first.body == sent)
      #expect(first["Set-Cookie"] == "session=1")
      #expect(first["X-Hop"] == nil)
      #expect(first["Keep-Alive"] != "timeout=5")
      #expect(first["Idempotency-Recorded-At"] == nil)

      let second = try await rig.order("k")
      expectReplayed(second, of: first)
      #expect(recordedFields(second) == recordedFields(first))
      #expect(recordedFields(second).count == 6)
      #expect(first["Age"] == "7" && first["Retry-After"] == "9" && first["X-Should-Retry"] == "true")
      for name in ["Set-Cookie", "Server-Timing", "Alt-Svc", "Retry-After", "X-Should-Retry", "X-Hop"] {
        #expect(second[name] == nil, "\(name)")
      }
      // The age of the response itself, and that of the record.
      #expect(second["Age"].flatMap { Int($0) }.map { 7...60 ~= $0 } == true, "\(second.fields)")
      #expect(second["Date"] != "Thu, 01 Jan 1970 00:00:00 GMT")
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test func `a replay states when it was recorded and when it expires`() async throws {
    try await Rig.run(Configuration(route: ["retention": "2h"])) { rig in
      _ = try await rig.order("k")
      let replay = try await rig.order("k")
      let recordedAt = try #require(replay.date("Idempotency-Recorded-At"))
      let expires = try #require(replay.date("Idempotency-Expires"))
      #expect(abs(recordedAt.timeIntervalSinceNow) < 60)
      #expect(abs(expires.timeIntervalSince(recordedAt) - 7200) <= 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `an outcome outlives the process`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store)) { rig in
      let first = try await rig.order("k")
      try await rig.semel.kill()
      try await rig.semel.start()
      expectReplayed(try await rig.order("k"), of: first)
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `replays come from the store if nothing is cached`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, storeMembers: ["local_cache": "0B"])) { rig in
      let first = try await rig.order("k")
      for _ in 0..<3 { expectReplayed(try await rig.order("k"), of: first) }
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a client that does not read its response delays nobody else`(store: StoreKind) async throws {
    // More than the sockets between the two can buffer.
    let size = 12 << 20
    try await Rig.run(Configuration(store: store, route: ["max_response_body": "16MiB"])) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, [], content: .filler(size)) }
      let slow = try await RawClient(port: rig.semel.ports.proxy)
      try await slow.setReading(false)
      try await slow.send(Rig.orderText("k"))
      try await rig.backend.arrived(1)
      let replay = try await rig.order("k")
      expectReplayed(replay, 201)
      #expect(replay.body.count == size)
      try await slow.setReading(true)
      let response = try await slow.response()
      expectExecuted(response)
      #expect(response.body == replay.body)
    }
  }

  @Test func `cookies are recorded if the route keeps them`() async throws {
    try await Rig.run(Configuration(route: ["set_cookie": "keep"])) { rig in
      rig.backend.on("/v1/orders") { _ in Self.reply }
      _ = try await rig.order("k")
      #expect(try await rig.order("k")["Set-Cookie"] == "session=1")
    }
  }

  @Test func `other keys and other endpoints run on their own`() async throws {
    try await Rig.run { rig in
      expectExecuted(try await rig.order("k"))
      expectExecuted(try await rig.order("other"))
      expectExecuted(try await rig.order("k", path: "/v1/refunds"))
      expectExecuted(
        try await rig.semel.client.send("PUT", "/v1/orders", Rig.fields(key: "k"), body: #"{"amount":1999}"#))
      expectExecuted(try await rig.order("k", [("Host", "other.example")]))
      #expect(rig.backend.requests.count == 5)
    }
  }

  @Test func `one key serves all paths of a route whose endpoint is the route`() async throws {
    try await Rig.run(Configuration(route: ["endpoint": "route"])) { rig in
      expectExecuted(try await rig.order("k"))
      expectRefused(try await rig.order("k", path: "/v1/refunds"), 409, "payload_mismatch", retryable: false)
      #expect(rig.backend.requests.count == 1)
    }
  }
}

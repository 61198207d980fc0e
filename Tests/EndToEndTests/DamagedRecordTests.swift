import TestSupport
import Testing

/// Records in Redis that Semel cannot read: its clients are refused, and operators see and forget them.
struct DamagedRecordTests {
  /// The name of a record's key in Redis.
  private static func key(of id: String, in redis: RedisServer) throws -> String {
    let names = try redis.command(["KEYS", "*{\(id)}"])
    let first = names?.split(separator: "\n").first
    return String(try #require(first))
  }

  @Test func `an unreadable record is listed, and its key runs again once it is forgotten`() async throws {
    try await Rig.run(Configuration(store: .redis)) { rig in
      expectExecuted(try await rig.order("a"))
      let redis = try #require(rig.redis)
      let id = try #require(rig.backend.requests[0].requestID)
      let key = try Self.key(of: id, in: redis)
      try redis.command(["SET", key, "9 of a later version"])
      try await rig.semel.kill()
      try await rig.semel.start()
      #expect(try await rig.order("a").status == 503)
      #expect(try await rig.key(["list", "--state", "unreadable"]).output.contains(id))
      try await rig.key(["forget", "--id=\(id)"])
      try await rig.semel.process.line(containing: #""was":"unreadable""#)
      expectExecuted(try await rig.order("a"))
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: ["9223372036854775807", "9007199254740993", "99999999999999999999999"])
  func `a record whose attempt is damaged is unreadable, and its key runs again once it is forgotten`(
    attempt: String
  ) async throws {
    try await Rig.run(Configuration(store: .redis, storeMembers: ["local_cache": "0B"])) { rig in
      expectExecuted(try await rig.order("a"))
      let redis = try #require(rig.redis)
      let id = try #require(rig.backend.requests[0].requestID)
      let key = try Self.key(of: id, in: redis)
      var words = try #require(try redis.command(["GET", key])).split(separator: " ", maxSplits: 4)
      words[3] = Substring(attempt)
      try redis.command(["SET", key, words.joined(separator: " ")])
      expectRefused(try await rig.order("a"), 503, "store_unreadable", retryable: true)
      try await rig.key(["forget", "--id=\(id)"])
      expectExecuted(try await rig.order("a"))
      #expect(rig.backend.requests.count == 2)
    }
  }

  /// Runs an order, and puts something else into the place of its recorded response.
  private static func executeAndDamage(_ order: String, _ damage: String, _ rig: Rig) async throws {
    expectExecuted(try await rig.order(order))
    let redis = try #require(rig.redis)
    let key = try key(of: try #require(rig.backend.requests.last?.requestID), in: redis)
    let record = try #require(try redis.command(["GET", key]))
    let parts = record.split(separator: " ", maxSplits: 13, omittingEmptySubsequences: false)
    try redis.command(["SET", key, parts[..<13].joined(separator: " ") + " " + damage])
  }

  /// Responses that are none: version, status, and the lengths of fields and trailers.
  private static let damagedResponses = [
    "\u{1}\0\0" + String(repeating: "\0", count: 8), "\u{1}\0\u{1}" + String(repeating: "\0", count: 8),
    "\u{1}\u{7F}\u{7F}" + String(repeating: "\0", count: 8), "\u{1}\u{1}\u{1}\0\0\0\u{6}\0\0\0\0broken",
  ]

  /// A route whose small responses stand in their records, since these live no longer.
  private static let whole = ["retention": "24h", "remember": "24h"]

  @Test func `a response that is damaged is unreadable, and ends no process`() async throws {
    let configuration = Configuration(
      store: .redis, storeMembers: ["local_cache": "0B"], route: Self.whole)
    try await Rig.run(configuration) { rig in
      for (index, damage) in Self.damagedResponses.enumerated() {
        try await Self.executeAndDamage("\(index)", damage, rig)
        expectRefused(try await rig.order("\(index)"), 503, "store_unreadable", retryable: true)
      }
      #expect(rig.backend.requests.count == Self.damagedResponses.count)
    }
  }

  @Test func `a record whose response is damaged is listed and counted`() async throws {
    try await Rig.run(Configuration(store: .redis, route: Self.whole)) { rig in
      let redis = try #require(rig.redis)
      for (index, damage) in ["garbage", "\u{1}", "\u{1}longer than its head tells"].enumerated() {
        try await Self.executeAndDamage("\(index)", damage, rig)
      }
      expectExecuted(try await rig.order("whole"))
      // The count that was made before the damage, and the turn of the process that has made it.
      try await rig.semel.kill()
      try redis.command(["DEL", "semel:census", "semel:census:turn"])
      try await rig.semel.start()
      try await rig.semel.counter("semel_open_records", label: #"state="unreadable""#, isAtLeast: 3)
      let listed = try await rig.key(["list", "--json", "--state", "unreadable"]).output
      #expect(
        Set(rig.backend.requests.prefix(3).compactMap(\.requestID).filter(listed.contains)).count == 3,
        "\(listed)")
      #expect(!listed.contains(try #require(rig.backend.requests[3].requestID)))
      #expect(try await rig.order("0").status == 503)
    }
  }
}

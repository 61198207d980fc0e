import Foundation
import TestSupport
import Testing

/// Recorded responses that are compressed in the store.
struct CompressionTests {
  /// A list of orders of some 100 KiB, whose names repeat and whose values do not.
  private static let body: String = {
    var generator = SeededGenerator(seed: 7)
    let orders = (0..<1000).map { number in
      let (id, amount) = (String(generator.next(), radix: 16), generator.next() % 10_000)
      return #"{"id":"ord_\#(id)","object":"order","amount":\#(amount),"number":\#(number)}"#
    }
    return #"{"object":"list","data":[\#(orders.joined(separator: ","))]}"#
  }()

  private static func configuration(_ store: StoreKind, _ compression: String) -> Configuration {
    var configuration = Configuration(store: store)
    // Each replay comes from the store.
    configuration.storeMembers = ["local_cache": "0B", "compression": compression]
    configuration.isAppendOnly = true
    return configuration
  }

  /// The bytes that the store takes for its only record.
  private static func stored(_ rig: Rig) async throws -> Int {
    guard let redis = rig.redis else {
      let directory = TemporaryDirectory()
      try rig.writeConfiguration(to: directory.file("semel.yaml"))
      let output = try await rig.command(["store", "stats", "--json", directory.file("semel.yaml")]).output
      let members = try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Int]
      return try #require(members?["response_bytes"])
    }
    let keys = try #require(try redis.command(["KEYS", "semel:{*"])).split(separator: "\n")
    return try keys.reduce(0) { sum, key in
      let reply = try #require(try redis.command(["MEMORY", "USAGE", String(key)]))
      return sum + (try #require(Int(reply.dropFirst())))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a large response takes a part of its size and is replayed byte for byte`(
    store: StoreKind
  ) async throws {
    try await Rig.run(Self.configuration(store, "auto")) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, body: Self.body) }
      let first = try await rig.order("a")
      expectExecuted(first)
      #expect(first.text == Self.body)
      let stored = try await Self.stored(rig)
      #expect(stored < Self.body.utf8.count / 2, "\(stored) of \(Self.body.utf8.count)")
      expectReplayed(try await rig.order("a"), of: first)
      try await rig.semel.kill()
      try await rig.semel.start()
      expectReplayed(try await rig.order("a"), of: first)
      let name = "semel_store_compressed_bytes_total"
      #expect(try await rig.semel.counter(name, label: #"form="plain""#) == 0)
      expectExecuted(try await rig.order("b"))
      let plain = try await rig.semel.counter(name, label: #"form="plain""#)
      let compressed = try await rig.semel.counter(name, label: #"form="stored""#)
      #expect(plain > Self.body.utf8.count && compressed > 0 && compressed < plain / 2)
      let shown = try await rig.key(["show"] + Rig.selection("a")).output
      #expect(shown.contains(#""body_bytes" : \#(Self.body.utf8.count)"#), "\(shown)")
      #expect(shown.contains(#""stored_bytes" : "#), "\(shown)")
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `switched off, it compresses nothing and replays what was compressed`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store, "auto")) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, body: Self.body) }
      let first = try await rig.order("a")
      let stored = try await Self.stored(rig)
      try await rig.semel.kill()
      try rig.semel.configure(rig.text(of: Self.configuration(store, "off")))
      try await rig.semel.start()
      expectReplayed(try await rig.order("a"), of: first)
      let second = try await rig.order("b")
      expectExecuted(second)
      #expect(try await Self.stored(rig) > stored + Self.body.utf8.count)
      expectReplayed(try await rig.order("b"), of: second)
      #expect(rig.backend.requests.count == 2)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `what is compressed already is stored as it is`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store, "auto")) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, [("Content-Type", "image/png")], body: Self.body) }
      let first = try await rig.order("a")
      #expect(try await Self.stored(rig) > Self.body.utf8.count)
      expectReplayed(try await rig.order("a"), of: first)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `a damaged response is refused, and never run again`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store, "auto")) { rig in
      rig.backend.on("/v1/orders") { _ in Reply(201, body: Self.body) }
      expectExecuted(try await rig.order("a"))
      try await Self.damage(rig)
      for _ in 0..<2 {
        expectRefused(try await rig.order("a"), 503, "store_unreadable", retryable: true)
      }
      #expect(rig.backend.requests.count == 1)
      let shown = try await rig.key(["show"] + Rig.selection("a")).output
      #expect(shown.contains(#""state" : "unreadable""#), "\(shown)")
      try await rig.key(["forget"] + Rig.selection("a"))
      expectExecuted(try await rig.order("a"))
    }
  }

  /// Changes bytes in the middle of the recorded response.
  private static func damage(_ rig: Rig) async throws {
    if let redis = rig.redis {
      let key = try #require(try redis.command(["KEYS", "semel:{*:r:*"]))
      #expect(try redis.command(["SETRANGE", key, "5000", "damaged"])?.hasPrefix(":") == true)
      return
    }
    try await Python.runInline(
      """
      import sqlite3, sys
      database = sqlite3.connect(sys.argv[1], timeout=20)
      (body,) = database.execute("select body from response").fetchone()
      database.execute("update response set body = ?", (body[:5000] + b"damaged" + body[5007:],))
      database.commit()
      """, [try #require(rig.storePath)])
  }
}

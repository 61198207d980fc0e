import Foundation
import Glibc
import TestSupport
import Testing

/// Recorded responses that are sealed in the store.
struct EncryptionTests {
  /// Every value of the exchanges, each of which contains this.
  private static let needle = "n33dle"
  private static let newer = "the newer secret of this test"
  private static let older = "the older secret of this test"

  /// A configuration whose store seals with these secrets; none for no encryption.
  private static func configuration(
    _ store: StoreKind, _ secrets: [String], in directory: TemporaryDirectory
  ) throws -> Configuration {
    var configuration = Configuration(
      store: store, upstream: ["settle": "0s"],
      route: ["max_response_body": "64KiB", "fingerprint": "{explain: true}"])
    let caller = "caller: {parts: ['header:Authorization']}"
    configuration.firstRoutes = [
      "{name: looked, match: {methods: [POST], path: /v1/looked}, \(caller), on_unknown: reconcile, "
        + "reconcile: {path: '/lookup?request_id={request_id}', status: 201}}",
      "{name: batch, match: {methods: [POST], path: /v1/batch}, \(caller), "
        + "batch: {items: /orders, key: /id, results: /results}}",
    ]
    configuration.isAppendOnly = true
    // The test searches Redis' file, which must not be compressed.
    configuration.redisArguments = ["--rdbcompression", "no"]
    guard !secrets.isEmpty else { return configuration }
    let files = try secrets.map { secret in
      let path = directory.file(String(secret.prefix(9).suffix(5)))
      try secret.write(toFile: path, atomically: true, encoding: .utf8)
      return path
    }
    configuration.storeMembers["encryption"] = "{secret_files: [\(files.joined(separator: ", "))]}"
    return configuration
  }

  /// Sends requests to every kind of end, with the needle in all of their values.
  private static func fill(_ rig: Rig) async throws {
    let fields = [("Content-Type", "application/json"), ("X-Needle", needle)]
    rig.backend.on("/v1/orders") { request in
      switch request["Idempotency-Key"] {
      case "n33dle-lost": .unanswered
      case "n33dle-large": Reply(201, fields, body: String(repeating: needle + " ", count: 5000))
      case "n33dle-huge":
        Reply(
          201, fields + [("Location", "/v1/\(needle)")], body: String(repeating: needle + " ", count: 50_000))
      case "n33dle-busy": Reply(503, fields, body: needle)
      default: Reply(201, fields + [("Location", "/v1/\(needle)")], body: #"{"id":"\#(needle)"}"#)
      }
    }
    for key in ["small", "large", "huge", "busy", "lost", "resolved"] {
      _ = try await order(rig, "n33dle-\(key)")
    }
    try await explain(rig)
    rig.backend.on("/v1/looked") { _ in .unanswered }
    rig.backend.on("/lookup") { _ in Reply(200, fields, body: needle) }
    rig.backend.on("/v1/batch") { _ in
      Reply(201, fields, body: #"{"results":[{"id":"item-\#(needle)","made":"\#(needle)"}]}"#)
    }
    expectRefused(try await looked(rig), 502, "outcome_unknown", retryable: true)
    // The verdict is applied only if the record is read again at once.
    expectReplayed(try await Rig.repeated(until: { $0.status != 409 }) { try await looked(rig) }, 201)
    #expect(try await batch(rig).idempotencyStatus == "batch; executed=1; replayed=0; refused=0")
    let body = TemporaryDirectory()
    try needle.write(toFile: body.file("body"), atomically: true, encoding: .utf8)
    try await rig.key(
      [
        "resolve", "--applied", "--status", "201", "--header", "X-Needle: \(needle)", "--body",
        body.file("body"),
      ] + selection("n33dle-lost"))
  }

  /// Has a payload refused whose record holds digests of its members.
  private static func explain(_ rig: Rig) async throws {
    let deadline = ContinuousClock.now + .seconds(20)
    var number = 0
    while true {
      number += 1
      let key = "n33dle-explained-\(number)"
      _ = try await order(rig, key)
      let other = try await order(rig, key, body: #"{"another \#(needle)":"\#(needle)"}"#)
      #expect(other.problem?.code == "payload_mismatch")
      // The secret of the digests comes from the store, a moment after the start.
      if try await rig.key(["show"] + selection(key)).output.contains("last_mismatch") { return }
      guard ContinuousClock.now < deadline else { throw TestFailure("no mismatch was explained") }
    }
  }

  private static func looked(_ rig: Rig) async throws -> ReceivedResponse {
    try await rig.order("n33dle-looked", caller: "Bearer \(needle)", path: "/v1/looked")
  }

  private static func batch(_ rig: Rig) async throws -> ReceivedResponse {
    let body = #"{"orders":[{"id":"item-\#(needle)","\#(needle)":"\#(needle)"}]}"#
    return try await rig.order(nil, body: body, caller: "Bearer \(needle)", path: "/v1/batch")
  }

  private static func storedBytes(of key: String, _ rig: Rig) async throws -> Int {
    let shown = try await rig.key(["show"] + selection(key)).output
    return try #require(shown.firstMatch(of: /"stored_bytes" : (\d+)/).flatMap { Int($0.1) }, "\(shown)")
  }

  private static func order(
    _ rig: Rig, _ key: String, body: String = #"{"note \#(needle)":"\#(needle)"}"#
  ) async throws -> ReceivedResponse {
    try await rig.order(
      key, body: body, caller: "Bearer \(needle)", path: "/v1/orders?note=\(needle)")
  }

  private static func selection(_ key: String) -> [String] {
    [
      "--route", "orders", "--key", key, "--caller", "header:Authorization=Bearer \(needle)", "--path",
      "/v1/orders", "--method", "POST", "--host", "orders.example",
    ]
  }

  /// The files of the store, and those that Semel has open, that contain the needle.
  private static func findings(_ rig: Rig) throws -> [String] {
    var directories = ["/proc/\(rig.semel.process.id)/fd"]
    if let path = rig.storePath { directories.append((path as NSString).deletingLastPathComponent) }
    if let redis = rig.redis {
      try redis.command(["SAVE"])
      let words = try #require(try redis.command(["CONFIG", "GET", "dir"])).split(separator: "\n")
      directories.append(String(words[1]))
      for key in try #require(try redis.command(["KEYS", "*"])).split(separator: "\n") {
        #expect(!key.contains(needle))
      }
    }
    return directories.flatMap { directory in
      (FileManager.default.enumerator(atPath: directory)?.allObjects as? [String] ?? []).filter { name in
        contains("\(directory)/\(name)")
      }
    }
  }

  private static func contains(_ path: String) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
    guard let content = FileManager.default.contents(atPath: path) else { return false }
    return content.range(of: Data(needle.utf8)) != nil
  }

  @Test(arguments: StoreKind.allCases, ["auto", "always"])
  func `nothing of a request or a response is found in the store`(
    store: StoreKind, compression: String
  ) async throws {
    let directory = TemporaryDirectory()
    var configuration = try Self.configuration(store, [Self.newer], in: directory)
    configuration.storeMembers["compression"] = compression
    try await Rig.run(configuration) { rig in
      try await Self.fill(rig)
      #expect(try Self.findings(rig) == [])
      // From the store, not from the cache of the process.
      try await rig.semel.kill()
      try await rig.semel.start()
      #expect(try Self.findings(rig) == [])
      let runs = rig.backend.requests.count
      let small = try await Self.order(rig, "n33dle-small")
      expectReplayed(small, 201)
      #expect(small.text.contains(Self.needle) && small["X-Needle"] == Self.needle)
      let large = try await Self.order(rig, "n33dle-large")
      expectReplayed(large, 201)
      #expect(large.text.count == 35_000)
      let lost = try await Self.order(rig, "n33dle-lost")
      expectReplayed(lost, 201)
      #expect(lost.text == Self.needle)
      let huge = try await Self.order(rig, "n33dle-huge")
      #expect(huge.problem?.code == "response_not_kept", "\(huge.text)")
      #expect(huge.text.contains("/v1/\(Self.needle)"))
      let looked = try await Self.looked(rig)
      expectReplayed(looked, 201)
      #expect(looked.text == Self.needle)
      let batch = try await Self.batch(rig)
      #expect(batch.idempotencyStatus == "batch; executed=0; replayed=1; refused=0")
      #expect(batch.text.contains(#""made":"\#(Self.needle)""#), "\(batch.text)")
      #expect(rig.backend.requests.count == runs)
      let shown = try await rig.key(["show"] + Self.selection("n33dle-small")).output
      #expect(shown.contains(#""state" : "completed""#) && shown.contains(#""sealed" : true"#), "\(shown)")
      // By default a sealed response is not compressed; its length would tell of its content.
      let stored = try await Self.storedBytes(of: "n33dle-large", rig)
      #expect(compression == "always" ? stored < 1000 : stored > 35_000, "\(stored)")
      try await Self.stop(rig)
      #expect(try Self.findings(rig) == [])
    }
  }

  /// Stops Semel as an operator would: the embedded store's log goes into its database.
  private static func stop(_ rig: Rig) async throws {
    rig.semel.terminate()
    try await rig.semel.process.exit()
  }

  /// The search of the test before finds the responses in each kind of file that a store has.
  @Test(arguments: StoreKind.allCases)
  func `without encryption the responses are found in the store`(store: StoreKind) async throws {
    let directory = TemporaryDirectory()
    try await Rig.run(Self.configuration(store, [], in: directory)) { rig in
      try await Self.fill(rig)
      let running = try Self.findings(rig)
      try await Self.stop(rig)
      let stopped = try Self.findings(rig)
      switch store {
      case .embedded:
        #expect(running.contains { $0.hasSuffix("semel.db-wal") }, "\(running)")
        #expect(stopped.contains { $0.hasSuffix("semel.db") }, "\(stopped)")
      case .redis:
        #expect(running.contains { $0.hasSuffix("dump.rdb") }, "\(running)")
        #expect(running.contains { $0.hasSuffix(".aof") }, "\(running)")
      }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `secrets are rotated, and a record of a lost one never runs again`(store: StoreKind) async throws {
    let directory = TemporaryDirectory()
    try await Rig.run(Self.configuration(store, [Self.older], in: directory)) { rig in
      expectExecuted(try await rig.order("a"))
      let restart = { (secrets: [String]) in
        try await rig.semel.kill()
        try rig.semel.configure(
          rig.text(of: try Self.configuration(store, secrets, in: directory)))
        try await rig.semel.start()
      }
      try await restart([Self.newer, Self.older])
      expectReplayed(try await rig.order("a"), 201)
      expectExecuted(try await rig.order("b"))
      try await restart([Self.newer])
      expectReplayed(try await rig.order("b"), 201)
      for _ in 0..<3 {
        expectRefused(try await rig.order("a"), 503, "store_unreadable", retryable: true)
      }
      try await rig.semel.process.line(containing: "not among store.encryption.secret_files")
      try await restart([])
      for key in ["a", "b"] {
        expectRefused(try await rig.order(key), 503, "store_unreadable", retryable: true)
      }
      #expect(rig.backend.requests.count == 2)
      let shown = try await rig.key(["show"] + Rig.selection("a")).output
      #expect(shown.contains(#""state" : "unreadable""#), "\(shown)")
      try await rig.key(["forget"] + Rig.selection("a"))
      expectExecuted(try await rig.order("a"))
      #expect(rig.backend.requests.count == 3)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `an inquiry opens the outcome that it asks for`(store: StoreKind) async throws {
    let directory = TemporaryDirectory()
    try await Rig.run(Self.configuration(store, [Self.newer], in: directory)) { rig in
      let first = try await rig.order("a")
      let outcome = try await rig.semel.client.send(
        "GET", "/.well-known/idempotency/outcome?method=POST&path=/v1/orders&response=true",
        Rig.fields(key: "a"))
      expectReplayed(outcome, of: first)
    }
  }
}

import Foundation
import TestSupport
import Testing

/// `fingerprint: {explain: true}`: operators see which members of a refused payload differ, and clients do not.
struct MismatchExplanationTests {
  private static let first = #"{"amount":1999,"item":"book","gift":true}"#
  private static let second = #"{"amount":2500,"item":"book","note":"x"}"#

  private static func configuration(
    _ store: StoreKind, explain: Bool = true, _ more: [String: String] = [:],
    storeMembers: [String: String] = [:]
  ) -> Configuration {
    Configuration(
      store: store, storeMembers: storeMembers,
      route: ["fingerprint": "{explain: \(explain)}"].merging(more) { _, own in own })
  }

  /// Sends both payloads under new keys until the record can explain them, which it can once the secret of the
  /// namespace is known; the last key.
  private func mismatch(_ rig: Rig, isRefused: Bool = true) async throws -> String {
    let deadline = ContinuousClock.now + .seconds(20)
    var number = 0
    while true {
      number += 1
      let key = "k\(number)"
      #expect(try await rig.order(key, body: Self.first).status == 201)
      let response = try await rig.order(key, body: Self.second)
      if isRefused {
        expectRefused(response, 409, "payload_mismatch", retryable: false)
        for word in ["amount", "note", "gift"] { #expect(!response.text.contains(word)) }
        #expect(!response.fields.contains { $0.1.contains("amount") })
      }
      let shown = try await rig.key(["show"] + Rig.selection(key)).output
      if shown.contains("last_mismatch") { return key }
      guard ContinuousClock.now < deadline else { throw TestFailure("no mismatch was explained: \(shown)") }
      try await Task.sleep(for: .milliseconds(50))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `the log and the operator's view name the members that differ`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store)) { rig in
      let key = try await mismatch(rig)
      let shown = try await rig.key(["show"] + Rig.selection(key)).output
      #expect(shown.contains(#""differs" : "/amount +/note -1""#), "\(shown)")
      try await rig.semel.process.line(containing: #""differs":"/amount +/note -1""#)
      let count = rig.backend.requests.count
      expectReplayed(try await rig.order(key, body: Self.first), 201)
      // The same members in another order are the same payload.
      expectReplayed(
        try await rig.order(key, body: #"{"gift":true,"item":"book","amount":1999}"#), 201)
      #expect(rig.backend.requests.count == count)
      if let redis = rig.redis {
        let id = try #require(rig.backend.requests.last?.requestID)
        let text = try #require(try redis.command(["GET", "semel:{\(id)}"]))
        #expect(text.contains(";m=") && !text.contains("amount") && !text.contains(":1999"), "\(text)")
      }
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `sealed records explain, too`(store: StoreKind) async throws {
    let secrets = TemporaryDirectory()
    for name in ["seal", "id"] {
      try String(repeating: name, count: 20).write(
        toFile: secrets.file(name), atomically: true, encoding: .utf8)
    }
    let members = [
      "encryption": "{secret_files: ['\(secrets.file("seal"))']}", "id_secret_file": secrets.file("id"),
    ]
    try await Rig.run(Self.configuration(store, storeMembers: members)) { rig in
      // A configured secret is known from the start.
      #expect(try await mismatch(rig) == "k1")
      try await rig.semel.process.line(containing: #""differs":"/amount +/note -1""#)
      expectReplayed(try await rig.order("k1", body: Self.first), 201)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `records from before it replay and refuse as ever`(store: StoreKind) async throws {
    try await Rig.run(Self.configuration(store, explain: false)) { rig in
      let first = try await rig.order("old", body: Self.first)
      expectExecuted(first)
      try await rig.reload { $0.route["fingerprint"] = "{explain: true}" }
      let key = try await mismatch(rig)
      expectReplayed(try await rig.order("old", body: Self.first), of: first)
      expectRefused(
        try await rig.order("old", body: Self.second), 409, "payload_mismatch", retryable: false)
      #expect(try await !rig.key(["show"] + Rig.selection("old")).output.contains("last_mismatch"))
      try await rig.reload { $0.route["fingerprint"] = "{explain: false}" }
      expectReplayed(try await rig.order(key, body: Self.first), 201)
      expectRefused(try await rig.order(key, body: Self.second), 409, "payload_mismatch", retryable: false)
    }
  }

  @Test func `a released record runs again with its payload, and refuses another`() async throws {
    try await Rig.run(Self.configuration(.embedded)) { rig in
      _ = try await mismatch(rig)
      rig.backend.on("/v1/orders", inTurn: [Reply(503), Reply(201)])
      #expect(try await rig.order("r", body: Self.first).status == 503)
      expectRefused(try await rig.order("r", body: Self.second), 409, "payload_mismatch", retryable: false)
      expectExecuted(try await rig.order("r", body: Self.first))
    }
  }

  @Test func `a large payload is explained, and a shadowed route explains what it would refuse`() async throws
  {
    try await Rig.run(Self.configuration(.embedded, ["shadow": "true"])) { rig in
      _ = try await mismatch(rig, isRefused: false)
      try await rig.semel.process.line(containing: #""differs":"/amount +/note -1""#)
      let filler = String(repeating: "x", count: 100_000)
      #expect(try await rig.order("large", body: #"{"a":"\#(filler)","b":1}"#).status == 201)
      #expect(try await rig.order("large", body: #"{"a":"\#(filler)y","b":1}"#).status == 201)
      try await rig.semel.process.line(containing: #""differs":"/a""#)
    }
  }
}

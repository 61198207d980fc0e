import TestSupport
import Testing

/// Commands about one record that reach another listener than the admin listener, which seems to accept them.
struct OtherListenerTests {
  private static let id = String(repeating: "A", count: 43)
  private static let applied = ["--applied", "--status", "201"]

  private static let verbs: [[String]] = [
    ["show"], ["forget"], ["resolve", "--not-applied"], ["resolve"] + applied,
  ]
  /// The commands about a record that is named by its id.
  private static let byID: [[String]] = verbs.map { $0 + ["--id", id] }
  /// The commands about a record that is described.
  private static let described: [[String]] = (verbs + [["put"] + applied]).map { $0 + Rig.selection("a") }

  private func expectOtherListener(_ rig: Rig, _ words: [String], _ body: String) async throws {
    for path in ["\(Self.id)", "\(Self.id)/resolve", "find", "put"] {
      rig.backend.on("/v1/records/" + path) { _ in Reply(200, body: body) }
    }
    let url = "http://127.0.0.1:\(rig.semel.ports.proxy)"
    let process = try await rig.command(["key"] + words + ["--admin", url], ends: .code(1))
    let text = "semel: the response of \(url) is not from Semel's admin listener: "
    #expect(process.errors == text + "give that listener's URL with --admin\n", "\(words) \(body)")
    #expect(process.output.isEmpty, "\(words) \(body): \(process.output)")
  }

  @Test func `a change that another listener accepts is a failure`() async throws {
    // Without a key, the commands' requests pass to the backend.
    try await Rig.run(Configuration(route: ["idempotency": "optional"])) { rig in
      for words in Self.byID + Self.described {
        for body in ["", "text", "{}", #"{"id":"1","state":"completed"}"#, #"{"id":"\#(Self.id)"}"#] {
          try await expectOtherListener(rig, words, body)
        }
      }
    }
  }

  @Test func `the document of another record is none of the one that is meant`() async throws {
    let other = "-" + String(repeating: "A", count: 42)
    try await Rig.run(Configuration(route: ["idempotency": "optional"])) { rig in
      for words in Self.byID {
        try await expectOtherListener(rig, words, #"{"id":"\#(other)","state":"absent"}"#)
      }
    }
  }
}

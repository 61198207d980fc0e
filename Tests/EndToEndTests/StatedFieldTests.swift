import TestSupport
import Testing

/// The fields of a response that an operator states.
struct StatedFieldTests {
  /// Fields that describe one moment, and are recorded of no response.
  private static let momentary = [
    ("Age", "3"), ("Retry-After", "5"), ("Server-Timing", "a"), ("Alt-Svc", "x"), ("x-should-retry", "true"),
  ]

  private static let applied: [String] =
    ["--applied", "--status", "201", "--header", "X-Order: 7"]
    + momentary.flatMap { ["--header", "\($0.0): \($0.1)"] }

  private func expectReplay(_ response: ReceivedResponse) {
    expectReplayed(response, 201)
    #expect(response["X-Order"] == "7")
    for (name, _) in Self.momentary where name != "Age" { #expect(response[name] == nil, "\(name)") }
    // That of the record alone.
    #expect(response["Age"].flatMap { Int($0) } != nil, "\(response.fields)")
  }

  @Test(arguments: StoreKind.allCases)
  func `what no record keeps is not replayed from the cache either`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: ["on_unknown": "hold"])) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      let order = ["-H", "Content-Type: application/json", "-d", #"{"amount":1999}"#]
      let put = try await rig.key(["put"] + Self.applied + order + Rig.selection("put"))
      #expect(try await rig.order("resolved").status == 502)
      let resolved = try await rig.key(["resolve"] + Self.applied + Rig.selection("resolved"))
      for shown in [put.output, resolved.output] {
        #expect(shown.contains(#""x-order""#) && !shown.contains(#""age""#), "\(shown)")
      }
      // Twice from this process's cache, and then from the store.
      for _ in 1...2 {
        for key in ["put", "resolved"] { expectReplay(try await rig.order(key)) }
      }
      try await rig.semel.kill()
      try await rig.semel.start()
      for key in ["put", "resolved"] { expectReplay(try await rig.order(key)) }
      #expect(rig.backend.requests.count == 1)
    }
  }
}

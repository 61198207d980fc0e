import Foundation
import TestSupport
import Testing

/// The time for which an outcome that an operator states is kept.
struct StatedRetentionTests {
  private struct Shown: Decodable {
    let recordedAt: Date
    let expiresAt: Date

    var retention: TimeInterval { expiresAt.timeIntervalSince(recordedAt) }
  }

  private func retention(_ shown: ManagedProcess) throws -> TimeInterval {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    decoder.dateDecodingStrategy = .custom { decoder in
      let text = try decoder.singleValueContainer().decode(String.self)
      return try Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
    return try decoder.decode(Shown.self, from: Data(shown.output.utf8)).retention.rounded()
  }

  private static let day: TimeInterval = 24 * 3600

  private static let applied = ["resolve", "--applied", "--status", "201"]

  @Test(arguments: StoreKind.allCases)
  func `it is the record's own route that says how long`(store: StoreKind) async throws {
    let lasting = ["on_unknown": "hold", "retention": "45d", "remember": "60d"]
    let pages = "{name: pages, match: {path: /pages}, idempotency: off}"
    try await Rig.run(Configuration(store: store, route: lasting, firstRoutes: [pages])) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      expectRefused(try await rig.order("a"), 502, "outcome_unknown", retryable: false)
      let id = try #require(rig.backend.requests[0].requestID)
      let resolved = try await rig.key(Self.applied + ["--id", id])
      #expect(try retention(resolved) == 45 * Self.day)
      // Also where the operator names it, and by whatever else the record is known.
      let named = try await rig.key(Self.applied + ["--amend", "--id", id, "--route", "orders"])
      #expect(try retention(named) == 45 * Self.day)
      let selected = try await rig.key(Self.applied + ["--amend"] + Rig.selection("a"))
      #expect(try retention(selected) == 45 * Self.day)
      let other = try await rig.key(
        Self.applied + ["--amend", "--id", id, "--route", "nowhere"], ends: .code(1))
      #expect(other.errors.contains("there is no route nowhere"), "\(other.errors)")
      let wrong = try await rig.key(
        Self.applied + ["--amend", "--id", id, "--route", "pages"], ends: .code(1))
      #expect(wrong.errors.contains("the record is of route orders, not pages"), "\(wrong.errors)")
    }
  }

  @Test func `a route beside an id is for a response alone`() async throws {
    let process = try ManagedProcess(
      [SemelProcess.binary, "key", "resolve", "--not-applied", "--id", "a", "--route", "orders"])
    #expect(try await process.exit() != .code(0))
    #expect(process.errors.contains("give --id, or --route with --key and --caller"), "\(process.errors)")
  }
}

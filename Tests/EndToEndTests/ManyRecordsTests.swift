import Foundation
import TestSupport
import Testing

/// Commands about more records than one page of the admin listener has, or ten.
struct ManyRecordsTests {
  private static let batch = ["batch": "{items: /orders, key: /id, results: /results, max_items: 1000}"]
  private static let count = 1200

  /// Sends batches of a hundred items each, and expects this status of each response.
  private func sendItems(_ rig: Rig, status: Int) async throws {
    for start in stride(from: 0, to: Self.count, by: 100) {
      let items = (start..<start + 100).map { #"{"id":"item-\#($0)"}"# }
      let body = #"{"orders":[\#(items.joined(separator: ","))]}"#
      let response = try await rig.order(nil, body: body)
      #expect(response.status == status, "\(response.text)")
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `all records of a caller are found`(store: StoreKind) async throws {
    try await Rig.run(Configuration(store: store, route: Self.batch), within: .seconds(120)) { rig in
      rig.backend.on("/v1/orders") { request in
        let results = Array(repeating: "{}", count: request.text.components(separatedBy: "item-").count - 1)
        return Reply(201, body: #"{"results":[\#(results.joined(separator: ","))]}"#)
      }
      try await sendItems(rig, status: 201)
      let shown = try await rig.key(["show"] + Rig.selection("item-0")).output
      let line = try #require(shown.split(separator: "\n").first { $0.contains("caller_digest") })
      let digest = try #require(line.split(separator: "\"").last { $0.count == 8 })
      let find = ["find", "--caller-digest", String(digest)]
      let found = try await rig.key(find, within: .seconds(40))
      #expect(found.output.contains("\n\(Self.count) records of 1 caller\n"), "\(found.output.suffix(400))")
      #expect(found.output.contains("searched: the whole store, and"), "\(found.output.suffix(400))")
      #expect(found.errors.isEmpty, "\(found.errors)")
      let json = try await rig.key(find + ["--json"], within: .seconds(40)).output
      #expect(json.components(separatedBy: #""next_delivery""#).count - 1 == Self.count)
      #expect(!json.contains(#""next" "#))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `many open records are listed with the oldest first`(store: StoreKind) async throws {
    struct Row: Decodable {
      let first_seen: String
      let age_seconds: Double
    }
    try await Rig.run(Configuration(store: store, route: Self.batch), within: .seconds(120)) { rig in
      rig.backend.on("/v1/orders") { _ in .unanswered }
      try await sendItems(rig, status: 502)
      let json = try await rig.key(["list", "--json"], within: .seconds(40)).output
      let rows = try json.split(separator: "\n").map {
        try JSONDecoder().decode(Row.self, from: Data($0.utf8))
      }
      #expect(rows.count == Self.count)
      #expect(rows.map(\.first_seen) == rows.map(\.first_seen).sorted())
      #expect(rows.allSatisfy { $0.age_seconds > 0 })
    }
  }
}

import TestSupport
import Testing

/// The fields that the backend of a batch gets, and those of its response.
extension BatchTests {
  @Test func `the backend of a batch gets no record's id and no attempt, and its fields reach no client`()
    async throws
  {
    try await Rig.run(Self.configuration()) { rig in
      rig.backend.on("/v1/orders") { _ in
        Reply(201, [("Location", "/v1/orders/7"), ("X-Own", "1")], body: #"{"results":[{"id":"a"}]}"#)
      }
      let order = #"{"orders":[{"id":"a"}]}"#
      let first = try await rig.order(nil, body: order, [("Idempotency-Key", "own")])
      #expect(first.idempotencyStatus == "batch; executed=1; replayed=0; refused=0")
      #expect(first["Location"] == nil && first["X-Own"] == nil)
      let request = try #require(rig.backend.requests.first)
      #expect(request.requestID == nil && request.attempt == nil)
      // It means nothing to Semel here: another one is the same batch.
      #expect(request["Idempotency-Key"] == "own")
      let again = try await rig.order(nil, body: order, [("Idempotency-Key", "other")])
      #expect(again.idempotencyStatus == "batch; executed=0; replayed=1; refused=0")
      #expect(rig.backend.requests.count == 1)
    }
  }

  @Test(arguments: StoreKind.allCases)
  func `the backend's word about its response counts for all items, and a failed item's result is an outcome`(
    store: StoreKind
  ) async throws {
    try await Rig.run(Self.configuration(store)) { rig in
      rig.backend.on(
        "/v1/orders",
        inTurn: [
          Reply(200, [("Idempotency-Outcome", "retry")], body: #"{"results":["busy","busy"]}"#),
          Reply(200, body: #"{"results":[{"error":"no stock"},{"order":7}]}"#),
        ])
      let items = [("a", 1), ("b", 1)]
      let first = try await send(rig, items)
      #expect(first.text.contains("busy") && first["Idempotency-Outcome"] == nil)
      let second = try await send(rig, items)
      #expect(second.status == 200 && second.text.contains("no stock"), "\(second.text)")
      let third = try await send(rig, items)
      #expect(third.text.contains("no stock") && third.text.contains(#"{"order":7}"#), "\(third.text)")
      #expect(third.idempotencyStatus == "batch; executed=0; replayed=2; refused=0")
      #expect(rig.backend.requests.count == 2)
    }
  }
}

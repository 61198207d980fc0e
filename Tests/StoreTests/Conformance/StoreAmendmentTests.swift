import Idempotency
import Testing

/// Decisions of an operator that are taken back, in every store.
struct StoreAmendmentTests {
  @Test(arguments: StoreUnderTest.all)
  func `a completion that is amended to a release still follows an unknown outcome`(_ kind: StoreUnderTest)
    async throws
  {
    try await kind.run { store async throws in
      let first = try await store.lapsed()
      let second = try await store.granted(Samples.again(first, takeOver: .afterSettle(0)))
      #expect(second.followsUnknown)
      #expect(try await store.markUnknown(second) == .done)
      #expect(try await store.resolve(first.id, as: .applied(Samples.completion())) == .done)
      #expect(try await store.find(first.id).name == .completed)
      #expect(try await store.resolve(first.id, as: .notApplied, amending: true) == .done)
      let third = try await store.granted(Samples.again(first))
      #expect(third.attempt == 3 && third.followsUnknown && !third.onlyRejectedSoFar)
    }
  }
}

import Idempotency
import Testing

/// Attempt numbers in a store that has lost records.
struct StoreGenerationTests {
  /// A store of each implementation of the rules.
  private static let kinds =
    [StoreUnderTest.embedded] + StoreUnderTest.onServers([.redis, .cluster] + StoreUnderTest.others)

  @Test(arguments: kinds)
  func `a record's next owners have numbers of the present generation, and count on`(
    _ kind: StoreUnderTest
  ) async throws {
    try await kind.runOpened { opened async throws in
      let store = opened.store
      let released = try await store.granted(Samples.request())
      #expect(try await store.release(released, .remembered) == .done)
      let unknown = try await store.granted(Samples.request())
      #expect(try await store.markUnknown(unknown) == .done)
      let forgotten = try await store.completed()
      #expect(try await store.forget(forgotten.id, fence: .seconds(60)))
      let held = try await store.granted(Samples.request())
      let succeed = try #require(opened.successor)
      let successor = try await succeed()
      let base = Claim.attemptsPerGeneration
      #expect(try await successor.granted(Samples.request()).attempt == base + 1)
      for first in [released, unknown, forgotten] {
        #expect(first.attempt == 1)
        let second = try await successor.granted(Samples.again(first, takeOver: .afterSettle(0)))
        #expect(second.attempt == base + 2 && second.ordinal == 2)
        #expect(try await successor.release(second, .remembered) == .done)
        #expect(try await successor.find(first.id) == .released(attempt: base + 2))
        let third = try await successor.granted(Samples.again(first))
        #expect(third.attempt == base + 3 && third.ordinal == 3)
      }
      // A repeated claim is no next owner.
      #expect(try await successor.granted(Samples.again(held, owner: held.owner)).attempt == 1)
    }
  }
}

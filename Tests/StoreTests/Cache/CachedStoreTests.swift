import Idempotency
import Logging
import Store
import TestSupport
import Testing

/// The cache before a store: the embedded one, which is closed if a test must see which of both has replied.
struct CachedStoreTests {
  private func withStore(
    capacityBytes: Int = 1 << 20, _ body: (CachedStore<EmbeddedStore>) async throws -> Void
  ) async throws {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let base = try EmbeddedStore(path: directory.file("semel.db"), logger: Logger(label: "test"))
    try await body(CachedStore(base, cache: LocalCache(capacityBytes: capacityBytes)))
    await base.close()
  }

  @Test func `a completion is replayed without the store, as the store would`() async throws {
    try await withStore { store async throws in
      let claim = try await store.completed()
      let stored = try await store.find(claim.id).completedRecord
      await store.base.close()
      guard case .taken(.completed(let record)) = store.knownOutcome(of: claim.id, claim.fingerprint) else {
        throw Unexpected(what: "no hit")
      }
      #expect(record.outcome == stored?.outcome)
      #expect(record.recordedAt == stored?.recordedAt)
      #expect(record.expiresAt == stored?.expiresAt)
      #expect(store.knownOutcome(of: claim.id, Samples.changed(claim).fingerprint) == .mismatch)
    }
  }

  @Test func `an outcome that another node recorded is cached once it was read`() async throws {
    try await withStore { store async throws in
      let claim = try await store.base.completed()
      #expect(store.knownOutcome(of: claim.id, claim.fingerprint) == nil)
      #expect(try await store.claim(Samples.again(claim)).taken == .completed)
      await store.base.close()
      #expect(store.knownOutcome(of: claim.id, claim.fingerprint)?.taken == .completed)
    }
  }

  @Test func `a mismatch with a cached record is one hit, without a request to the store`() async throws {
    try await withStore { store async throws in
      let claim = try await store.completed()
      await store.base.close()
      let before = store.cache.statistics
      #expect(store.knownOutcome(of: claim.id, Samples.changed(claim).fingerprint) == .mismatch)
      #expect(store.cache.statistics.hits == before.hits + 1)
      #expect(store.cache.statistics.misses == before.misses)
    }
  }

  @Test func `a mismatch fills nothing`() async throws {
    try await withStore { store async throws in
      let claim = try await store.base.completed()
      #expect(try await store.claim(Samples.changed(claim)) == .mismatch)
      #expect(store.cache.statistics.entries == 0)
    }
  }

  @Test func `a forgotten record is not replayed`() async throws {
    try await withStore { store async throws in
      let claim = try await store.completed()
      #expect(try await store.forget(claim.id, fence: .seconds(60)))
      #expect(store.knownOutcome(of: claim.id, claim.fingerprint) == nil)
      #expect(try await store.granted(Samples.again(claim)).attempt == 2)
    }
  }

  @Test func `a forget whose reply is lost removes the entry all the same`() async throws {
    try await withStore { store async throws in
      let claim = try await store.completed()
      await store.base.close()
      await #expect(throws: StoreError.self) { try await store.forget(claim.id, fence: .seconds(60)) }
      #expect(store.knownOutcome(of: claim.id, claim.fingerprint) == nil)
    }
  }

  @Test func `a late completion fills the cache with the store's record`() async throws {
    try await withStore { store async throws in
      let claim = try await store.base.completed()
      let late = Samples.completion(.whole(Samples.response(status: 500, body: "late")))
      #expect(try await store.complete(claim, with: late).outcome == .done)
      guard case .taken(.completed(let record)) = store.knownOutcome(of: claim.id, claim.fingerprint) else {
        throw Unexpected(what: "no hit")
      }
      #expect(record.outcome == .whole(Samples.response()))
    }
  }

  @Test func `a lost completion fills nothing`() async throws {
    try await withStore { store async throws in
      let claim = try await store.lapsed()
      #expect(try await store.resolve(claim.id, as: .applied(Samples.completion())) == .done)
      #expect(try await store.complete(claim, with: Samples.completion()).outcome.lost == .completed)
      #expect(store.cache.statistics.entries == 0)
    }
  }

  @Test func `an expired entry is read from the store`() async throws {
    try await withStore { store async throws in
      let claim = try await store.completed(with: Samples.completion(retention: 30))
      try await store.until(claim.id) { $0.name == .expired }
      #expect(try await store.claim(Samples.again(claim)).taken == .expired)
    }
  }

  @Test func `without capacity everything is read from the store`() async throws {
    try await withStore(capacityBytes: 0) { store async throws in
      let claim = try await store.completed()
      #expect(try await store.claim(Samples.again(claim)).taken == .completed)
      #expect(store.knownOutcome(of: claim.id, claim.fingerprint) == nil)
    }
  }

  @Test func `while the subscription is down the store is read`() async throws {
    try await withStore { store async throws in
      let claim = try await store.completed()
      store.cache.subscriptionDown()
      #expect(store.knownOutcome(of: claim.id, claim.fingerprint) == nil)
      #expect(try await store.claim(Samples.again(claim)).taken == .completed)
      #expect(store.knownOutcome(of: claim.id, claim.fingerprint) == nil)
      store.cache.subscriptionUp()
      #expect(try await store.claim(Samples.again(claim)).taken == .completed)
      #expect(store.knownOutcome(of: claim.id, claim.fingerprint) != nil)
    }
  }
}

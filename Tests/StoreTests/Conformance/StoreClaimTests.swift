import Idempotency
import Platform
import Testing

/// Claims, in every store.
struct StoreClaimTests {
  @Test(arguments: StoreUnderTest.all)
  func `the first claim is granted with attempt 1`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let request = Samples.request()
      let claim = try await store.granted(request)
      #expect(claim.id == request.id)
      #expect(claim.owner == request.owner)
      #expect(claim.fingerprint == request.fingerprint)
      #expect(claim.attempt == 1)
      #expect(!claim.followsUnknown)
      #expect(claim.onlyRejectedSoFar)
      #expect(claim.lease == request.lease)
      #expect(claim.unknownRetention == request.unknownRetention)
      #expect(claim.remember == request.remember)
      let standing = try await store.find(request.id)
      guard case .inFlight(let left, 1) = standing else { throw Unexpected(what: "\(standing)") }
      #expect(left > 0 && left <= request.lease)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a repeated claim of the same owner is granted again`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let request = Samples.request()
      let first = try await store.granted(request)
      let second = try await other.granted(request)
      #expect(second.attempt == 1)
      #expect(second.firstSeen == first.firstSeen)
      #expect(second.owner == first.owner)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a lapsed owner that claims again regains its lease`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let lapsed = try await store.lapsed()
      let claim = try await store.granted(Samples.again(lapsed, owner: lapsed.owner))
      #expect(claim.attempt == 1)
      #expect(try await store.find(claim.id).name == .inFlight)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a record in flight is taken`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let claim = try await store.granted(Samples.request())
      #expect(try await other.claim(Samples.again(claim)).taken == .inFlight)
      #expect(try await other.claim(Samples.again(claim, takeOver: .afterSettle(0))).taken == .inFlight)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `of a hundred concurrent claims exactly one is granted`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let id = Samples.id()
      let fingerprint = Samples.fingerprint()
      let granted = try await withThrowingTaskGroup(of: Bool.self) { group in
        for index in 0..<100 {
          let handle = index.isMultiple(of: 2) ? store : other
          group.addTask {
            switch try await handle.claim(Samples.request(id, fingerprint: fingerprint)) {
            case .granted: true
            case .taken(.inFlight(_, attempt: 1)): false
            case let outcome: throw Unexpected(what: "\(outcome)")
            }
          }
        }
        return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(granted == 1)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `another payload is a mismatch in every state`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let inFlight = try await store.granted(Samples.request())
      let unknown = try await store.lapsed()
      let released = try await store.granted(Samples.request())
      #expect(try await store.release(released, .remembered) == .done)
      let completed = try await store.completed()
      let expired = try await store.completed(with: Samples.completion(retention: 1))
      try await store.until(expired.id) { $0.name == .expired }
      for claim in [inFlight, unknown, released, completed, expired] {
        let before = try await store.find(claim.id).name
        #expect(try await store.claim(Samples.changed(claim)) == .mismatch)
        #expect(try await store.find(claim.id).name == before)
      }
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `another recipe is reported before anything is compared`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let recipe = Recipe(body: .raw, headers: ["x-a", "x,b;%"], ignore: [.json("/sent at"), .json("/é")])
      let inFlight = try await store.granted(Samples.request(fingerprint: Samples.fingerprint(recipe)))
      let completed = try await store.completed(Samples.request(fingerprint: Samples.fingerprint(recipe)))
      let released = try await store.granted(Samples.request(fingerprint: Samples.fingerprint(recipe)))
      #expect(try await store.release(released, .remembered) == .done)
      for claim in [inFlight, completed, released] {
        let other = Fingerprint(recipe: Recipe(), digest: claim.fingerprint.digest)
        #expect(
          try await store.claim(Samples.again(claim).changed(fingerprint: other)) == .otherRecipe(recipe))
      }
      #expect(try await store.find(released.id) == .released(attempt: 1))
      #expect(try await store.granted(Samples.again(released)).attempt == 2)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a lapsed lease is an unknown outcome and held`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let claim = try await store.lapsed()
      let outcome = try await store.claim(Samples.again(claim))
      guard case .taken(.unknown(let age, attempt: 1)) = outcome else { throw Unexpected(what: "\(outcome)") }
      #expect(age >= 0 && age < .seconds(60))
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an unknown record is taken over once it has settled`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let first = try await store.granted(Samples.request())
      #expect(try await store.markUnknown(first) == .done)
      let early = Samples.again(first, takeOver: .afterSettle(.seconds(60)))
      #expect(try await store.claim(early).taken == .unknown)
      try await store.until(first.id) { if case .unknown(let age, _) = $0 { age >= 20 } else { false } }
      let second = try await store.granted(Samples.again(first, takeOver: .afterSettle(20)))
      #expect(second.attempt == 2)
      #expect(second.firstSeen == first.firstSeen)
      #expect(second.followsUnknown)
      #expect(!second.onlyRejectedSoFar)
      #expect(try await store.complete(first, with: Samples.completion()).outcome.lost == .inFlight)
      #expect(try await store.release(second, .remembered) == .done)
      let third = try await store.granted(Samples.again(first))
      #expect(third.attempt == 3)
      #expect(third.followsUnknown)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `of several losses only the one that was seen is taken over`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let first = try await store.granted(Samples.request())
      #expect(try await store.markUnknown(first) == .done)
      let older = ClaimRequest.SeenLoss(age: .seconds(60), seenAt: .now)
      let other = Samples.again(first, takeOver: .ofLoss(older, afterSettle: 0))
      #expect(try await store.claim(other).taken == .unknown)
      let longAgo = ClaimRequest.SeenLoss(age: .seconds(1), seenAt: .now - .seconds(60))
      let stale = Samples.again(first, takeOver: .ofLoss(longAgo, afterSettle: 0))
      #expect(try await store.claim(stale).taken == .unknown)
      let seen = ClaimRequest.SeenLoss(age: 0, seenAt: .now)
      let unsettled = Samples.again(first, takeOver: .ofLoss(seen, afterSettle: .seconds(60)))
      #expect(try await store.claim(unsettled).taken == .unknown)
      let second = try await store.granted(Samples.again(first, takeOver: .ofLoss(seen, afterSettle: 0)))
      #expect(second.attempt == 2 && second.followsUnknown)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a lapsed lease is taken over once it has settled`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let first = try await store.lapsed()
      let second = try await store.granted(Samples.again(first, takeOver: .afterSettle(0)))
      #expect(second.attempt == 2)
      #expect(second.followsUnknown)
      #expect(try await store.renew(first).lost == .inFlight)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an unknown record ages to a tombstone, then is gone`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let first = try await store.granted(Samples.request(unknownRetention: 30, remember: .seconds(60)))
      #expect(try await store.markUnknown(first) == .done)
      try await store.until(first.id) { $0.name == .expired }
      #expect(try await store.claim(Samples.again(first)).taken == .expired)
      #expect(try await store.claim(Samples.again(first, takeOver: .afterSettle(0))).taken == .expired)
      let second = try await store.granted(Samples.request(unknownRetention: 30, remember: 30))
      #expect(try await store.markUnknown(second) == .done)
      try await store.until(second.id) { $0.name == .absent }
      #expect(try await store.granted(Samples.changed(second)).attempt == 1)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a released record is claimed with the next attempt`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let first = try await store.granted(Samples.request())
      #expect(try await store.release(first, .remembered) == .done)
      #expect(try await other.find(first.id) == .released(attempt: 1))
      let second = try await other.granted(Samples.again(first))
      #expect(second.attempt == 2)
      #expect(second.firstSeen == first.firstSeen)
      #expect(!second.followsUnknown)
      #expect(!second.onlyRejectedSoFar)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a completed record is replayed to whoever claims it`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let claim = try await store.completed()
      for handle in [store, other] {
        let outcome = try await handle.claim(Samples.again(claim))
        guard case .taken(.completed(let record)) = outcome else { throw Unexpected(what: "\(outcome)") }
        #expect(record.outcome == .whole(Samples.response()))
        #expect(record.attempt == 1)
        #expect(record.recordedAt >= claim.firstSeen)
        #expect(record.expiresAt == record.recordedAt + .seconds(600))
        #expect(record.remaining > 0 && record.remaining <= .seconds(600))
      }
      // The owner itself is no exception: its claim ended with its completion.
      #expect(try await store.claim(Samples.again(claim, owner: claim.owner)).taken == .completed)
    }
  }
}

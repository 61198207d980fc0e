import Idempotency
import NIOCore
import Testing

/// The commands of an owner, and of one that is no longer it, in every store.
struct StoreOwnerTests {
  @Test(arguments: StoreUnderTest.all)
  func `a renewal extends the lease, also a lapsed one`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let claim = Self.altered(try await store.lapsed(), lease: .seconds(60))
      #expect(try await store.renew(claim) == .done)
      #expect(try await store.renew(claim) == .done)
      let standing = try await store.find(claim.id)
      guard case .inFlight(let left, attempt: 1) = standing else { throw Unexpected(what: "\(standing)") }
      #expect(left > .seconds(30))
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a renewal leaves an ended record unchanged`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let unknown = try await store.granted(Samples.request())
      #expect(try await store.markUnknown(unknown) == .done)
      let released = try await store.granted(Samples.request())
      #expect(try await store.release(released, .remembered) == .done)
      let completed = try await store.completed()
      for (claim, name) in [(unknown, Standing.Name.unknown), (released, .released), (completed, .completed)]
      {
        #expect(try await store.renew(claim) == .done)
        #expect(try await store.find(claim.id).name == name)
      }
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an owner restores a record that the store has lost`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      // As after a store that restarted empty: a claim that it knows nothing of.
      let claims = (0..<3).map { _ in Self.stranger(attempt: 4) }
      #expect(try await store.renew(claims[0]) == .done)
      #expect(try await store.complete(claims[1], with: Samples.completion()).outcome == .done)
      #expect(try await store.markUnknown(claims[2]) == .done)
      let names: [Standing.Name] = [.inFlight, .completed, .unknown]
      for (claim, name) in zip(claims, names) {
        #expect(try await store.find(claim.id).name == name)
        #expect(try await store.claim(Samples.changed(claim)) == .mismatch)
        #expect(try await store.claim(Samples.again(claim)).taken == name)
      }
      #expect(try await store.find(claims[1].id).completedRecord?.attempt == 4)
      // Its attempts, times and flags are those of the claim.
      let next = try await store.granted(Samples.again(claims[2], takeOver: .afterSettle(0)))
      #expect(next.attempt == 5)
      #expect(next.firstSeen == claims[2].firstSeen)
      #expect(try await store.release(claims[0], .remembered) == .done)
      let second = try await store.granted(Samples.again(claims[0]))
      #expect(second.followsUnknown)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `attempts that do not count are remembered while the record is open`(_ kind: StoreUnderTest)
    async throws
  {
    try await kind.run { store async throws in
      var claim = try await store.granted(Samples.request())
      for uncounted in 1...12 {
        // A repeated release counts once.
        for _ in 0..<2 { #expect(try await store.release(claim, .uncounted) == .done) }
        claim = try await store.granted(Samples.again(claim))
        #expect(claim.uncountedAttempts == uncounted && claim.sendings == 1)
      }
      #expect(try await store.renew(claim) == .done)
      #expect(try await store.release(claim, .remembered) == .done)
      claim = try await store.granted(Samples.again(claim))
      #expect(claim.uncountedAttempts == 12 && claim.sendings == 2)
      #expect(try await store.markUnknown(claim) == .done)
      claim = try await store.granted(Samples.again(claim, takeOver: .afterSettle(0)))
      #expect(claim.uncountedAttempts == 12 && claim.sendings == 3 && claim.followsUnknown)
      #expect(try await store.complete(claim, with: Samples.completion()).outcome == .done)
      #expect(try await store.find(claim.id).completedRecord?.attempt == 15)
      // A record that the store has lost is made anew with the count.
      let stranger = Self.stranger(attempt: 4, uncountedAttempts: 2)
      #expect(try await store.markUnknown(stranger) == .done)
      let next = try await store.granted(Samples.again(stranger, takeOver: .afterSettle(0)))
      #expect(next.uncountedAttempts == 2 && next.attempt == 5)
    }
  }

  /// The same claim but for what is given.
  private static func altered(
    _ claim: Claim, attempt: Int? = nil, firstSeen: StoreInstant? = nil, followsUnknown: Bool? = nil,
    lease: Milliseconds? = nil
  ) -> Claim {
    Claim(
      id: claim.id, owner: claim.owner, fingerprint: claim.fingerprint, attempt: attempt ?? claim.attempt,
      firstSeen: firstSeen ?? claim.firstSeen, followsUnknown: followsUnknown ?? claim.followsUnknown,
      onlyRejectedSoFar: claim.onlyRejectedSoFar, lease: lease ?? claim.lease,
      unknownRetention: claim.unknownRetention, remember: claim.remember, requestedAt: claim.requestedAt)
  }

  private static func stranger(attempt: Int, uncountedAttempts: Int = 0) -> Claim {
    let request = Samples.request()
    return Claim(
      id: request.id, owner: request.owner, fingerprint: request.fingerprint, attempt: attempt,
      firstSeen: StoreInstant(milliseconds: 1_700_000_000_123), followsUnknown: true,
      onlyRejectedSoFar: false, uncountedAttempts: uncountedAttempts,
      lease: request.lease, unknownRetention: request.unknownRetention, remember: request.remember,
      requestedAt: BootInstant(nanoseconds: 0))
  }

  @Test(arguments: StoreUnderTest.all)
  func `a release of a missing record changes nothing`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let claim = Self.stranger(attempt: 1)
      #expect(try await store.release(claim, .remembered) == .done)
      #expect(try await store.release(claim, .deleted) == .done)
      #expect(try await store.find(claim.id) == .absent)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a repeated completion succeeds and overwrites nothing`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let claim = try await store.completed()
      let first = try await store.find(claim.id).completedRecord
      #expect(try await store.complete(claim, with: Samples.completion()).outcome == .done)
      let late = Samples.completion(.whole(Samples.response(status: 500, body: "late")))
      #expect(try await other.complete(claim, with: late).outcome == .done)
      let second = try await other.find(claim.id).completedRecord
      #expect(second?.outcome == .whole(Samples.response()))
      #expect(second?.recordedAt == first?.recordedAt)
      #expect(second?.expiresAt == first?.expiresAt)
      // A replay is the stored one, whatever a handle keeps for itself.
      for handle in [store, other] {
        let outcome = try await handle.claim(Samples.again(claim))
        guard case .taken(.completed(let record)) = outcome else { throw Unexpected(what: "\(outcome)") }
        #expect(record.outcome == .whole(Samples.response()))
        #expect(record.recordedAt == first?.recordedAt)
      }
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a late completion completes an unknown or lapsed record`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let lapsed = try await store.lapsed()
      #expect(try await store.complete(lapsed, with: Samples.completion()).outcome == .done)
      #expect(try await store.find(lapsed.id).name == .completed)
      let unknown = try await store.granted(Samples.request())
      #expect(try await store.markUnknown(unknown) == .done)
      #expect(try await store.complete(unknown, with: Samples.completion()).outcome == .done)
      #expect(try await store.find(unknown.id).name == .completed)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a release may be repeated, and ends the claim`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let claim = try await store.granted(Samples.request())
      #expect(try await store.release(claim, .remembered) == .done)
      #expect(try await store.release(claim, .remembered) == .done)
      #expect(try await store.complete(claim, with: Samples.completion()).outcome.lost == .released)
      #expect(try await store.markUnknown(claim).lost == .released)
      #expect(try await store.find(claim.id).name == .released)
    }
  }

  /// A release after a lost reply, which knows neither the attempt nor what went before.
  @Test(arguments: StoreUnderTest.all)
  func `a claim released unseen leaves the record unchanged`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let first = try await store.lapsed()
      let second = try await store.granted(Samples.again(first, takeOver: .afterSettle(0)))
      let unseen = Self.altered(
        second, attempt: 0, firstSeen: StoreInstant(milliseconds: 0), followsUnknown: false)
      #expect(try await store.release(unseen, .remembered) == .done)
      #expect(try await store.find(first.id) == .released(attempt: 2))
      let third = try await store.granted(Samples.again(first))
      #expect(third.attempt == 3)
      #expect(third.firstSeen == first.firstSeen)
      #expect(third.followsUnknown)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a deleted record is absent, and free for any payload`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let claim = try await store.granted(Samples.request())
      #expect(try await store.release(claim, .deleted) == .done)
      #expect(try await store.release(claim, .deleted) == .done)
      #expect(try await store.find(claim.id) == .absent)
      let next = try await store.granted(Samples.changed(claim))
      #expect(next.attempt == 1)
      #expect(next.onlyRejectedSoFar)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an unknown record may be released by its owner`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let remembered = try await store.granted(Samples.request())
      #expect(try await store.markUnknown(remembered) == .done)
      #expect(try await store.release(remembered, .remembered) == .done)
      #expect(try await store.find(remembered.id) == .released(attempt: 1))
      let lapsed = try await store.lapsed()
      #expect(try await store.release(lapsed, .deleted) == .done)
      #expect(try await store.find(lapsed.id) == .absent)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a completed record cannot be released`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let claim = try await store.completed()
      for release in [Release.remembered, .deleted] {
        let outcome = try await store.release(claim, release)
        guard case .lost(.completed(let record)) = outcome else { throw Unexpected(what: "\(outcome)") }
        #expect(record.outcome == .whole(Samples.response()))
      }
      #expect(try await store.markUnknown(claim) == .done)
      #expect(try await store.find(claim.id).name == .completed)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an outcome marked unknown stays so when marked again`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let claim = try await store.granted(Samples.request())
      #expect(try await store.markUnknown(claim) == .done)
      try await store.until(claim.id) { if case .unknown(let age, _) = $0 { age >= 10 } else { false } }
      #expect(try await other.markUnknown(claim) == .done)
      let standing = try await other.find(claim.id)
      guard case .unknown(let age, attempt: 1) = standing else { throw Unexpected(what: "\(standing)") }
      #expect(age >= 10)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a lapsed lease marked unknown was lost when it lapsed`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let claim = try await store.lapsed()
      let before = try await store.until(claim.id) {
        if case .unknown(let age, _) = $0 { age >= 10 } else { false }
      }
      #expect(try await store.markUnknown(claim) == .done)
      guard case .unknown(let old, _) = before, case .unknown(let new, _) = try await store.find(claim.id)
      else {
        throw Unexpected(what: "\(before)")
      }
      #expect(new >= old)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a fenced owner gets the record's present standing`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let first = try await store.lapsed()
      let second = try await other.granted(Samples.again(first, takeOver: .afterSettle(0)))
      let commands: [(Claim) async throws -> OwnerOutcome] = [
        { try await store.renew($0) },
        { try await store.complete($0, with: Samples.completion()).outcome },
        { try await store.release($0, .remembered) },
        { try await store.release($0, .deleted) },
        { try await store.markUnknown($0) },
      ]
      for command in commands {
        let outcome = try await command(first)
        guard case .lost(.inFlight(_, attempt: 2)) = outcome else { throw Unexpected(what: "\(outcome)") }
      }
      let completion = Samples.completion(.whole(Samples.response(body: "second")))
      #expect(try await other.complete(second, with: completion).outcome == .done)
      for command in commands {
        let outcome = try await command(first)
        guard case .lost(.completed(let record)) = outcome else { throw Unexpected(what: "\(outcome)") }
        #expect(record.outcome == completion.outcome)
        #expect(record.attempt == 2)
      }
    }
  }
}

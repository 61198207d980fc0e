import Idempotency
import Testing

/// The commands of an operator, in every store.
struct StoreOperatorTests {
  @Test(arguments: StoreUnderTest.all)
  func `a record that was never claimed is absent`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      #expect(try await store.find(Samples.id()) == .absent)
      #expect(try await store.forget(Samples.id(), fence: .seconds(60)) == false)
      let completion = Samples.completion()
      #expect(try await store.resolve(Samples.id(), as: .applied(completion)) == .lost(.absent))
      #expect(try await store.resolve(Samples.id(), as: .notApplied) == .lost(.absent))
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a forgotten record is absent in whatever state it was`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let inFlight = try await store.granted(Samples.request())
      let unknown = try await store.lapsed()
      let released = try await store.granted(Samples.request())
      #expect(try await store.release(released, .remembered) == .done)
      let completed = try await store.completed()
      for claim in [inFlight, unknown, released, completed] {
        #expect(try await other.forget(claim.id, fence: .seconds(60)))
        #expect(try await other.find(claim.id) == .absent)
        #expect(try await other.forget(claim.id, fence: .seconds(60)) == false)
      }
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `the fence keeps an owner from restoring its record`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let claim = try await store.granted(Samples.request())
      #expect(try await store.forget(claim.id, fence: .seconds(60)))
      #expect(try await store.renew(claim) == .lost(.absent))
      #expect(try await store.complete(claim, with: Samples.completion()).outcome == .lost(.absent))
      #expect(try await store.markUnknown(claim) == .lost(.absent))
      #expect(try await store.release(claim, .remembered) == .lost(.absent))
      #expect(try await store.find(claim.id) == .absent)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a forgotten record is claimed with the next attempt and any payload`(
    _ kind: StoreUnderTest
  ) async throws {
    try await kind.run { store async throws in
      let first = try await store.completed()
      #expect(try await store.forget(first.id, fence: .seconds(60)))
      let second = try await store.granted(Samples.changed(first))
      #expect(second.attempt == 2)
      #expect(second.firstSeen >= first.firstSeen)
      #expect(!second.followsUnknown)
      #expect(second.onlyRejectedSoFar)
      #expect(try await store.complete(first, with: Samples.completion()).outcome == .replaced)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an owner of a forgotten record does not learn the outcome of another payload`(
    _ kind: StoreUnderTest
  ) async throws {
    try await kind.run { store async throws in
      let first = try await store.granted(Samples.request())
      #expect(try await store.forget(first.id, fence: .seconds(60)))
      let changes = [
        Samples.changed(first),
        Samples.again(first).changed(fingerprint: Samples.fingerprint(Recipe(body: .raw))),
      ]
      for request in changes {
        let second = try await store.completed(request)
        #expect(try await store.renew(first) == .replaced)
        #expect(try await store.markUnknown(first) == .replaced)
        #expect(try await store.release(first, .remembered) == .replaced)
        #expect(try await store.complete(first, with: Samples.completion()).outcome == .replaced)
        #expect(try await store.find(first.id).completedRecord?.attempt == second.attempt)
        #expect(try await store.forget(first.id, fence: .seconds(60)))
      }
      // The same payload's outcome is the owner's as well.
      _ = try await store.completed(Samples.again(first))
      #expect(try await store.complete(first, with: Samples.completion()).outcome.lost == .completed)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `the fence outlives an owner that deletes its record`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let first = try await store.granted(Samples.request())
      #expect(try await store.forget(first.id, fence: .seconds(60)))
      let second = try await store.granted(Samples.changed(first))
      #expect(second.fence != nil)
      #expect(try await store.release(second, .deleted) == .done)
      #expect(try await store.release(second, .deleted) == .done)
      #expect(try await store.find(first.id) == .absent)
      for owner in [first, second] {
        #expect(try await store.renew(owner) == .lost(.absent))
        #expect(try await store.markUnknown(owner) == .lost(.absent))
        #expect(try await store.complete(owner, with: Samples.completion()).outcome == .lost(.absent))
      }
      #expect(try await store.release(first, .remembered) == .lost(.absent))
      let third = try await store.granted(Samples.changed(first))
      #expect(third.attempt == 3)
      #expect(third.onlyRejectedSoFar)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `the fence outlives a record that ends sooner`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      for end in [Ending.completed, .released, .unknown, .lapsed] {
        let first = try await store.granted(Samples.request())
        #expect(try await store.forget(first.id, fence: .seconds(60)))
        let request = Samples.request(first.id, unknownRetention: 1, remember: 1)
        let second = try await store.granted(request.changed(lease: end == .lapsed ? 1 : .seconds(60)))
        switch end {
        case .completed:
          let short = Samples.completion(retention: 1, remember: 1)
          #expect(try await store.complete(second, with: short).outcome == .done)
        case .released: #expect(try await store.release(second, .remembered) == .done)
        case .unknown: #expect(try await store.markUnknown(second) == .done)
        case .lapsed: break
        }
        try await store.until(first.id) { $0 == .absent }
        #expect(try await store.complete(first, with: Samples.completion()).outcome.lost != nil, "\(end)")
        #expect(try await store.markUnknown(first).lost != nil, "\(end)")
        #expect(try await store.renew(first).lost != nil, "\(end)")
        #expect(try await store.find(first.id) == .absent, "\(end)")
        let third = try await store.granted(Samples.changed(first))
        #expect(third.attempt == 3, "\(end)")
        #expect(third.fence != nil, "\(end)")
      }
    }
  }

  /// The end of a record.
  private enum Ending { case completed, released, unknown, lapsed }

  @Test(arguments: StoreUnderTest.all)
  func `the fence persists through takeover, resolution and a second forget`(
    _ kind: StoreUnderTest
  ) async throws {
    try await kind.run { store async throws in
      let first = try await store.granted(Samples.request())
      #expect(try await store.forget(first.id, fence: .seconds(60)))
      let second = try await store.granted(Samples.again(first))
      #expect(try await store.renew(second) == .done)
      #expect(try await store.markUnknown(second) == .done)
      let third = try await store.granted(Samples.again(first, takeOver: .afterSettle(0)))
      #expect(third.fence?.until == second.fence?.until)
      #expect(try await store.markUnknown(third) == .done)
      #expect(try await store.resolve(first.id, as: .notApplied) == .done)
      let fourth = try await store.granted(Samples.again(first))
      #expect(fourth.attempt == 4)
      #expect(fourth.fence?.until == second.fence?.until)
      // A shorter fence does not end the longer one.
      #expect(try await store.forget(first.id, fence: 1))
      let fifth = try await store.granted(Samples.again(first))
      #expect(fifth.fence?.until == second.fence?.until)
      #expect(try await store.complete(first, with: Samples.completion()).outcome.lost == .inFlight)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a fence ends`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let claim = try await store.granted(Samples.request())
      #expect(try await store.forget(claim.id, fence: 1))
      // The fence cannot be seen by `find`, only by what an owner meets.
      while try await store.renew(claim) != .done {}
      #expect(try await store.find(claim.id).name == .inFlight)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an unknown record is resolved as applied`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let claim = try await store.lapsed()
      let completion = Samples.completion()
      #expect(try await other.resolve(claim.id, as: .applied(completion)) == .done)
      let record = try await store.find(claim.id).completedRecord
      #expect(record?.outcome == completion.outcome)
      #expect(record?.attempt == 1)
      #expect(try await store.claim(Samples.again(claim)).taken == .completed)
      #expect(try await other.resolve(claim.id, as: .notApplied).lost == .completed)
      // The owner that lost the response holds the record no longer.
      let late = Samples.completion(.whole(Samples.response(body: "late")))
      #expect(try await store.complete(claim, with: late).outcome.lost == .completed)
      #expect(try await store.find(claim.id).completedRecord?.outcome == completion.outcome)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an unknown record is resolved as not applied`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let first = try await store.granted(Samples.request())
      #expect(try await store.markUnknown(first) == .done)
      #expect(try await other.resolve(first.id, as: .notApplied) == .done)
      #expect(try await store.find(first.id) == .released(attempt: 1))
      #expect(try await store.complete(first, with: Samples.completion()).outcome.lost == .released)
      #expect(try await store.renew(first).lost == .released)
      let second = try await store.granted(Samples.again(first))
      #expect(second.attempt == 2)
      #expect(!second.onlyRejectedSoFar)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an operator's resolution can be amended until the record is claimed again`(_ kind: StoreUnderTest)
    async throws
  {
    try await kind.run { store, other async throws in
      let claim = try await store.lapsed()
      let wrong = Samples.completion(.whole(Samples.response(body: "wrong")))
      let right = Samples.completion(.whole(Samples.response(body: "right")))
      #expect(try await store.resolve(claim.id, as: .applied(wrong), amending: true) == .done)
      #expect(try await other.claim(Samples.again(claim)).taken == .completed)
      #expect(try await store.resolve(claim.id, as: .applied(right)).lost == .completed)
      #expect(try await store.resolve(claim.id, as: .applied(right), amending: true) == .done)
      #expect(try await store.find(claim.id).completedRecord?.outcome == right.outcome)
      #expect(try await store.resolve(claim.id, as: .notApplied, amending: true) == .done)
      #expect(try await store.find(claim.id) == .released(attempt: 1))
      #expect(try await store.resolve(claim.id, as: .applied(right), amending: true) == .done)
      #expect(try await store.find(claim.id).completedRecord?.outcome == right.outcome)
      #expect(try await store.complete(claim, with: wrong).outcome.lost == .completed)
      #expect(try await store.resolve(claim.id, as: .notApplied, amending: true) == .done)
      let second = try await other.granted(Samples.again(claim))
      #expect(try await store.resolve(claim.id, as: .applied(right), amending: true).lost == .inFlight)
      #expect(try await other.release(second, .remembered) == .done)
      #expect(try await store.resolve(claim.id, as: .applied(right), amending: true).lost == .released)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an outcome that an operator has put can be amended to none`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let claim = try await store.granted(Samples.request().changed(owner: .ofOperator()))
      let completion = Samples.completion(retention: .seconds(60), remember: .seconds(60))
      #expect(try await store.complete(claim, with: completion).outcome == .done)
      #expect(try await store.resolve(claim.id, as: .notApplied, amending: true) == .done)
      #expect(try await store.find(claim.id) == .released(attempt: 1))
      #expect(try await store.granted(Samples.again(claim)).attempt == 2)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an outcome that no operator resolved cannot be amended`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let completed = try await store.completed()
      let released = try await store.granted(Samples.request())
      #expect(try await store.release(released, .remembered) == .done)
      #expect(try await store.resolve(completed.id, as: .notApplied, amending: true).lost == .completed)
      #expect(
        try await store.resolve(released.id, as: .applied(Samples.completion()), amending: true).lost
          == .released)
      let expired = try await store.lapsed()
      let short = Samples.completion(retention: 1)
      #expect(try await store.resolve(expired.id, as: .applied(short)) == .done)
      try await store.until(expired.id) { $0.name == .expired }
      #expect(try await store.resolve(expired.id, as: .notApplied, amending: true).lost == .expired)
    }
  }

  @Test(arguments: StoreUnderTest.all, [false, true])
  func `a resolution of another attempt than the last one changes nothing`(
    _ kind: StoreUnderTest, isMarked: Bool
  ) async throws {
    try await kind.run { store, other async throws in
      let first = try await store.lapsed()
      let again = Samples.again(first, takeOver: .afterSettle(0))
      let second = try await other.granted(isMarked ? again : again.changed(lease: 30))
      if isMarked { #expect(try await other.markUnknown(second) == .done) }
      try await store.until(first.id) { $0.name == .unknown }
      let applied = Resolution.applied(Samples.completion())
      for (attempt, amends) in [(1, false), (1, true), (3, false)] {
        for resolution in [applied, .notApplied] {
          let refused = try await store.resolve(
            first.id, as: resolution, amending: amends, attempt: attempt)
          guard case .lost(.unknown(_, 2)) = refused else { throw Unexpected(what: "\(refused)") }
        }
      }
      // The owner that lost the response still holds the record.
      #expect(try await other.markUnknown(second) == .done)
      #expect(try await store.resolve(first.id, as: .notApplied, amending: false, attempt: 2) == .done)
      #expect(try await other.find(first.id) == .released(attempt: 2))
      let early = try await store.resolve(first.id, as: applied, amending: true, attempt: 1)
      #expect(early.lost == .released)
      #expect(try await store.resolve(first.id, as: applied, amending: true, attempt: 2) == .done)
      #expect(try await other.find(first.id).name == .completed)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a record that is not unknown cannot be resolved`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let inFlight = try await store.granted(Samples.request())
      let released = try await store.granted(Samples.request())
      #expect(try await store.release(released, .remembered) == .done)
      let completed = try await store.completed()
      let expired = try await store.completed(with: Samples.completion(retention: 1))
      try await store.until(expired.id) { $0.name == .expired }
      let aged = try await store.granted(Samples.request(unknownRetention: 1))
      #expect(try await store.markUnknown(aged) == .done)
      try await store.until(aged.id) { $0.name == .expired }
      let records: [(Claim, Standing.Name)] = [
        (inFlight, .inFlight), (released, .released), (completed, .completed), (expired, .expired),
        (aged, .expired),
      ]
      for (claim, name) in records {
        #expect(try await store.resolve(claim.id, as: .applied(Samples.completion())).lost == name)
        #expect(try await store.resolve(claim.id, as: .notApplied).lost == name)
        #expect(try await store.find(claim.id).name == name)
      }
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `open records are listed, in any number of parts`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      // More than one part of the list holds.
      var inFlight: Set<RecordID> = []
      for _ in 0..<1200 { inFlight.insert(try await store.granted(Samples.request()).id) }
      let unknown = try await store.granted(Samples.request())
      #expect(try await store.markUnknown(unknown) == .done)
      let lapsed = try await store.lapsed()
      let released = try await store.granted(Samples.request())
      #expect(try await store.release(released, .remembered) == .done)
      let completed = try await store.completed()
      let forgotten = try await store.granted(Samples.request())
      #expect(try await store.forget(forgotten.id, fence: .seconds(60)))

      var listed: [RecordID: RecordView] = [:]
      var cursor: String?
      var parts = 0
      repeat {
        let part = try await other.list(after: cursor)
        for record in part.records { listed[record.id] = record }
        cursor = part.next
        parts += 1
      } while cursor != nil
      #expect(parts > 1)
      #expect(inFlight.allSatisfy { listed[$0]?.standing.name == .inFlight })
      #expect(listed[unknown.id]?.standing.name == .unknown)
      #expect(listed[unknown.id]?.firstSeen == unknown.firstSeen)
      #expect(listed[lapsed.id]?.standing.name == .unknown)
      #expect((listed[lapsed.id]?.age ?? 0) >= lapsed.lease)
      for claim in [released, completed, forgotten] { #expect(listed[claim.id] == nil) }
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an invalid cursor is refused`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      await #expect(throws: StoreError.self) { try await store.list(after: "not a cursor") }
    }
  }
}

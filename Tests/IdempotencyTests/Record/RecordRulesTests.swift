import Idempotency
import NIOCore
import Testing

/// The rules at their exact instants; what they mean from outside is shown on every store by its conformance
/// suite.
struct RecordRulesTests {
  private static let now = StoreInstant(milliseconds: 1_000_000)
  private static let requestTime = BootInstant(nanoseconds: 77)
  private static let mine = OwnerToken(high: 1, low: 1)
  private static let theirs = OwnerToken(high: 2, low: 2)
  private static let fingerprint = Fingerprint(
    recipe: Recipe(), digest: Digest256((0..<32).map { UInt8($0) })!)
  private static let id = RecordID(fingerprint.digest)
  private static let response = Outcome.whole(
    RecordedResponse(status: 201, fields: ByteBuffer(string: "A: b\r\n"), body: ByteBuffer(string: "x")))

  private static func record(_ state: StoredRecord.State, owner: OwnerToken = mine) -> StoredRecord {
    StoredRecord(
      state: state, fingerprint: fingerprint, owner: owner, attempt: 3,
      firstSeen: StoreInstant(milliseconds: 5), followsUnknown: false, onlyRejectedSoFar: true,
      unknownRetention: 1000, remember: 500)
  }

  private static func entry(_ state: StoredRecord.State, owner: OwnerToken = mine) -> StoredEntry {
    .record(record(state, owner: owner))
  }

  private static func completed(at: StoreInstant = now, retention: Milliseconds = 100) -> StoredRecord.State {
    .completed(
      StoredCompletion(
        outcome: response, recordedAt: at, expiresAt: at + retention, rememberedUntil: at + 500))
  }

  private static func request(
    owner: OwnerToken = theirs, takeOver: ClaimRequest.TakeOver = .never
  ) -> ClaimRequest {
    ClaimRequest(
      id: id, owner: owner, fingerprint: fingerprint, lease: 200, takeOver: takeOver, unknownRetention: 1000,
      remember: 500)
  }

  private static func claim(owner: OwnerToken = mine) -> Claim {
    Claim(
      id: id, owner: owner, fingerprint: fingerprint, attempt: 3, firstSeen: StoreInstant(milliseconds: 5),
      followsUnknown: false, onlyRejectedSoFar: true, lease: 200, unknownRetention: 1000, remember: 500,
      requestedAt: requestTime)
  }

  private static func claims(
    _ entry: StoredEntry?, _ request: ClaimRequest = request(), at now: StoreInstant = now
  ) -> RecordStep<ClaimOutcome> {
    RecordRules.claim(entry, request, now: now, requestedAt: requestTime)
  }

  // Boundaries: each state up to the last millisecond, and from the next on.

  @Test(arguments: [
    (entry(.inFlight(leaseUntil: now)), -1, Standing.inFlight(leaseLeft: 1, attempt: 3)),
    (entry(.inFlight(leaseUntil: now)), 0, .unknown(age: 0, attempt: 3)),
    (entry(.inFlight(leaseUntil: now)), 999, .unknown(age: 999, attempt: 3)),
    (entry(.inFlight(leaseUntil: now)), 1000, .expired(attempt: 3)),
    (entry(.inFlight(leaseUntil: now)), 1499, .expired(attempt: 3)),
    (entry(.inFlight(leaseUntil: now)), 1500, .absent),
    (entry(.unknown(since: now)), -1, .unknown(age: 0, attempt: 3)),
    (entry(.unknown(since: now)), 999, .unknown(age: 999, attempt: 3)),
    (entry(.unknown(since: now)), 1000, .expired(attempt: 3)),
    (entry(.unknown(since: now)), 1500, .absent),
    (entry(.released(until: now)), -1, .released(attempt: 3)),
    (entry(.released(until: now)), 0, .absent),
    (entry(completed()), 100, .expired(attempt: 3)),
    (entry(completed()), 499, .expired(attempt: 3)),
    (entry(completed()), 500, .absent),
    (entry(.tombstone(until: now)), -1, .expired(attempt: 3)),
    (entry(.tombstone(until: now)), 0, .absent),
    (.fence(attempt: 3, until: now), -1, .absent),
    (.fence(attempt: 3, until: now), 0, .absent),
  ])
  func `a record's standing follows from its times`(_ entry: StoredEntry, _ offset: Int, _ standing: Standing)
  {
    #expect(RecordRules.find(entry, now: Self.now + Milliseconds(Int64(offset))) == standing)
  }

  @Test func `a completed record is returned with its remaining time`() {
    let record = CompletedRecord(
      outcome: Self.response, recordedAt: Self.now, expiresAt: Self.now + 100, remaining: 1, attempt: 3)
    #expect(RecordRules.find(Self.entry(Self.completed()), now: Self.now + 99) == .completed(record))
  }

  // Claims.

  @Test func `an expired record is claimed as if it had never existed`() throws {
    for entry in [nil, Self.entry(.released(until: Self.now)), .fence(attempt: 9, until: Self.now)] {
      let step = Self.claims(entry)
      let claim = try #require(step.outcome.granted)
      #expect(claim.attempt == 1)
      #expect(claim.firstSeen == Self.now)
      #expect(claim.onlyRejectedSoFar)
      #expect(claim.requestedAt == Self.requestTime)
      #expect(step.change == .put(.record(Self.fresh(attempt: 1))))
    }
  }

  private static func fresh(attempt: Int) -> StoredRecord {
    var record = record(.inFlight(leaseUntil: now + 200), owner: theirs)
    record.attempt = attempt
    record.firstSeen = now
    return record
  }

  @Test func `attempts continue to count across a fence`() throws {
    let step = Self.claims(.fence(attempt: 9, until: Self.now + 1))
    #expect(step.outcome.granted?.attempt == 10)
    var fresh = Self.fresh(attempt: 10)
    fresh.fencedUntil = Self.now + 1
    #expect(step.change == .put(.record(fresh)))
  }

  @Test(arguments: [(199, false), (200, true), (999, true), (1000, false)])
  func `an unknown record is taken over between settle and retention`(_ age: Int, _ isGranted: Bool) {
    let now = Self.now + Milliseconds(Int64(age))
    for entry in [Self.entry(.unknown(since: Self.now)), Self.entry(.inFlight(leaseUntil: Self.now))] {
      let step = Self.claims(entry, Self.request(takeOver: .afterSettle(200)), at: now)
      #expect((step.outcome.granted != nil) == isGranted)
      if let claim = step.outcome.granted {
        #expect(claim.attempt == 4)
        #expect(claim.followsUnknown)
        #expect(!claim.onlyRejectedSoFar)
        #expect(claim.firstSeen == StoreInstant(milliseconds: 5))
      } else {
        #expect(step.change == .none)
      }
      #expect(Self.claims(entry, at: now).outcome.granted == nil)
    }
  }

  @Test func `the same owner is granted its lapsed record again, and nobody else's state matters`() {
    let step = Self.claims(
      Self.entry(.inFlight(leaseUntil: Self.now + -50)), Self.request(owner: Self.mine))
    #expect(step.outcome.granted?.attempt == 3)
    #expect(step.change == .put(Self.entry(.inFlight(leaseUntil: Self.now + 200))))
  }

  @Test func `a mismatch is judged before the state, the recipe before the digest`() {
    var request = Self.request(takeOver: .afterSettle(0))
    var fingerprint = request.fingerprint
    fingerprint.digest.words[3] ^= 1
    request = request.changed(fingerprint: fingerprint)
    let states: [StoredRecord.State] = [
      .inFlight(leaseUntil: Self.now + 1), .unknown(since: Self.now), .released(until: Self.now + 1),
      Self.completed(), .tombstone(until: Self.now + 1),
    ]
    for state in states {
      #expect(Self.claims(Self.entry(state), request) == RecordStep(.none, .mismatch))
    }
    fingerprint.recipe = Recipe(body: .none)
    request = request.changed(fingerprint: fingerprint)
    for state in states {
      #expect(Self.claims(Self.entry(state), request) == RecordStep(.none, .otherRecipe(Recipe())))
    }
  }

  // Owners.

  @Test func `a lapsed lease marked unknown was lost at its end, a live one now`() {
    let lapsed = Self.entry(.inFlight(leaseUntil: Self.now + -30))
    #expect(
      RecordRules.markUnknown(lapsed, Self.claim(), now: Self.now).change
        == .put(Self.entry(.unknown(since: Self.now + -30))))
    let live = Self.entry(.inFlight(leaseUntil: Self.now + 30))
    #expect(
      RecordRules.markUnknown(live, Self.claim(), now: Self.now).change
        == .put(Self.entry(.unknown(since: Self.now))))
  }

  @Test func `a completion is remembered at least for its retention`() throws {
    for (retention, remember, until) in [(100, 500, 500), (100, 50, 100)] as [(Int64, Int64, Int64)] {
      let completion = Completion(
        outcome: Self.response, retention: Milliseconds(retention), remember: Milliseconds(remember))
      let step = RecordRules.complete(nil, Self.claim(), with: completion, now: Self.now)
      guard case .put(let entry) = step.change else {
        Issue.record("\(step.change)")
        return
      }
      #expect(entry.endsAt == Self.now + Milliseconds(until))
    }
  }

  @Test func `an owner never overwrites an ended record`() {
    let completion = Completion(outcome: Self.response, retention: 1, remember: 1)
    for state in [Self.completed(), .tombstone(until: Self.now + 1), .released(until: Self.now + 1)] {
      let entry = Self.entry(state)
      #expect(RecordRules.renew(entry, Self.claim(), now: Self.now).change == .none)
      #expect(RecordRules.complete(entry, Self.claim(), with: completion, now: Self.now).change == .none)
      #expect(RecordRules.markUnknown(entry, Self.claim(), now: Self.now).change == .none)
      for release in [Release.remembered, .deleted] {
        #expect(RecordRules.release(entry, Self.claim(), release, now: Self.now).change == .none)
      }
    }
  }

  @Test func `no other owner's token changes anything`() {
    let completion = Completion(outcome: Self.response, retention: 1, remember: 1)
    let stranger = Self.claim(owner: Self.theirs)
    let entries = [
      Self.entry(.inFlight(leaseUntil: Self.now + 1)), Self.entry(.inFlight(leaseUntil: Self.now)),
      Self.entry(.unknown(since: Self.now)), Self.entry(.released(until: Self.now + 1)),
      Self.entry(Self.completed()), .fence(attempt: 3, until: Self.now + 1),
    ]
    for entry in entries {
      let lost = RecordStep(.none, OwnerOutcome.lost(entry.standing(now: Self.now)))
      #expect(RecordRules.renew(entry, stranger, now: Self.now) == lost)
      let completed = RecordRules.complete(entry, stranger, with: completion, now: Self.now)
      #expect(completed.change == .none && completed.outcome.outcome == lost.outcome)
      #expect(RecordRules.release(entry, stranger, .remembered, now: Self.now) == lost)
      #expect(RecordRules.release(entry, stranger, .deleted, now: Self.now) == lost)
      #expect(RecordRules.markUnknown(entry, stranger, now: Self.now) == lost)
    }
  }

  @Test func `an owner does not learn the outcome of another payload`() {
    let completion = Completion(outcome: Self.response, retention: 1, remember: 1)
    var record = Self.record(Self.completed())
    record.owner = Self.theirs
    record.fingerprint.digest.words[3] ^= 1
    let owner = Self.claim()
    let replaced = RecordStep(.none, OwnerOutcome.replaced)
    #expect(RecordRules.renew(.record(record), owner, now: Self.now) == replaced)
    #expect(RecordRules.markUnknown(.record(record), owner, now: Self.now) == replaced)
    #expect(RecordRules.release(.record(record), owner, .remembered, now: Self.now) == replaced)
    let completed = RecordRules.complete(.record(record), owner, with: completion, now: Self.now)
    #expect(completed == RecordStep(.none, CompletionReply(outcome: .replaced, record: nil)))
  }

  @Test func `a completion returns the record as stored, also a repeated one`() {
    let completion = Completion(outcome: Self.response, retention: 100, remember: 500)
    let open = Self.entry(.inFlight(leaseUntil: Self.now))
    let step = RecordRules.complete(open, Self.claim(), with: completion, now: Self.now)
    #expect(step.outcome.record?.remaining == 100)
    var late = completion
    late.outcome = .statusOnly(status: 500, location: nil)
    let again = RecordRules.complete(
      Self.entry(Self.completed()), Self.claim(), with: late, now: Self.now + 40)
    #expect(again.change == .none)
    #expect(again.outcome.record?.outcome == Self.response)
    #expect(again.outcome.record?.remaining == 60)
    let tombstone = Self.entry(.tombstone(until: Self.now + 1))
    let over = RecordRules.complete(tombstone, Self.claim(), with: completion, now: Self.now)
    #expect(over.outcome == CompletionReply(outcome: .done, record: nil))
  }

  // Operators.

  @Test func `a fence stands for the longer span, and counts as no record`() {
    let entry = StoredEntry.fence(attempt: 3, until: Self.now + 100)
    #expect(RecordRules.forget(entry, fence: 50, now: Self.now) == RecordStep(.put(entry), false))
    let longer = StoredEntry.fence(attempt: 3, until: Self.now + 200)
    #expect(RecordRules.forget(entry, fence: 200, now: Self.now) == RecordStep(.put(longer), false))
    #expect(RecordRules.forget(nil, fence: 50, now: Self.now) == RecordStep(.none, false))
  }

  @Test func `the fence remains of a record that ends before it`() {
    var record = Self.record(.released(until: Self.now))
    record.fencedUntil = Self.now + 50
    let entry = StoredEntry.record(record)
    #expect(entry.endsAt == Self.now + 50)
    let completion = Completion(outcome: Self.response, retention: 1, remember: 1)
    for claim in [Self.claim(), Self.claim(owner: Self.theirs)] {
      let step = RecordRules.complete(entry, claim, with: completion, now: Self.now + 49)
      #expect(step == RecordStep(.none, CompletionReply(outcome: .lost(.absent), record: nil)))
    }
    let late = RecordRules.complete(entry, Self.claim(), with: completion, now: Self.now + 50)
    #expect(late.outcome.outcome == .done)
    #expect(
      Self.claims(entry, at: Self.now + 49).outcome.granted?.fence == Fence(until: Self.now + 50, left: 1))
    #expect(Self.claims(entry, at: Self.now + 49).outcome.granted?.attempt == 4)
    #expect(Self.claims(entry, at: Self.now + 50).outcome.granted?.attempt == 1)
  }

  @Test func `an owner restores a lost record with its fence`() {
    let fence = Fence(until: Self.now + 50, left: 50)
    let mine = Self.claim()
    let claim = Claim(
      id: mine.id, owner: mine.owner, fingerprint: mine.fingerprint, attempt: 3, firstSeen: mine.firstSeen,
      followsUnknown: false, onlyRejectedSoFar: true, lease: 200, unknownRetention: 1000, remember: 500,
      fence: fence, requestedAt: Self.requestTime)
    guard case .put(.record(let record)) = RecordRules.renew(nil, claim, now: Self.now).change else {
      Issue.record("the record was not made anew")
      return
    }
    #expect(record.fencedUntil == fence.until)
    let release = RecordRules.release(.record(record), claim, .deleted, now: Self.now)
    let left = StoredEntry.fence(attempt: 3, until: fence.until, givenBackBy: Self.mine)
    #expect(release == RecordStep(.put(left), .done))
    #expect(RecordRules.release(left, claim, .deleted, now: Self.now) == RecordStep(.none, .done))
    #expect(RecordRules.release(.record(record), claim, .deleted, now: Self.now + 50).change == .delete)
  }

  @Test func `resolving takes the record from its owner`() throws {
    let entry = Self.entry(.inFlight(leaseUntil: Self.now))
    let step = RecordRules.resolve(entry, as: .notApplied, successor: Self.theirs, now: Self.now)
    guard case .put(.record(let record)) = step.change else {
      Issue.record("\(step.change)")
      return
    }
    #expect(record.owner == Self.theirs)
    #expect(record.state == .released(until: Self.now + 500))
    #expect(!record.onlyRejectedSoFar)
    let live = Self.entry(.inFlight(leaseUntil: Self.now + 1))
    let refused = RecordRules.resolve(live, as: .notApplied, successor: Self.theirs, now: Self.now)
    #expect(refused == RecordStep(.none, .lost(.inFlight(leaseLeft: 1, attempt: 3))))
  }

  @Test(arguments: [2, 4])
  func `resolving another attempt than the last leaves the record`(attempt: Int) {
    let entry = Self.entry(.unknown(since: Self.now))
    for amends in [false, true] {
      let step = RecordRules.resolve(
        entry, as: .notApplied, amending: amends, attempt: attempt, successor: Self.theirs, now: Self.now)
      #expect(step == RecordStep(.none, .lost(.unknown(age: 0, attempt: 3))))
    }
    let step = RecordRules.resolve(
      entry, as: .notApplied, attempt: 3, successor: Self.theirs, now: Self.now)
    #expect(step.outcome == .done)
  }
}

extension ClaimOutcome {
  fileprivate var granted: Claim? {
    if case .granted(let claim) = self { claim } else { nil }
  }
}

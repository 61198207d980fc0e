import Testing

@testable import Idempotency

/// A delivery on an `open` route by what its process knows of the record while the store is away.
struct KnownRecordTests {
  private static let now = BootInstant(nanoseconds: 1_000_000_000)
  private static let print = Fingerprint(recipe: Recipe(), digest: .sample(2))
  private static let otherPrint = Fingerprint(recipe: Recipe(), digest: .sample(3))

  private static func request(_ fingerprint: Fingerprint = print, owner: UInt64 = 9) -> ClaimRequest {
    ClaimRequest(
      id: RecordID(.sample(1)), owner: OwnerToken(high: 9, low: owner), fingerprint: fingerprint,
      lease: .seconds(30), takeOver: .never, unknownRetention: .seconds(60), remember: .seconds(60))
  }

  /// The step of a newcomer that the store gives no reply, and what is known after it.
  private static func step(
    _ known: inout KnownRecord?, _ request: ClaimRequest = request(),
    _ error: StoreError = .unavailable("away"), now: BootInstant = now
  ) -> ClaimLifecycle.ClaimedAction {
    var lifecycle = ClaimLifecycle(route: .sample { $0.onStoreFailure = .open })
    return lifecycle.replied(.failure(error), to: request, isDown: true, known: &known, now: now)
  }

  private func expectRefusal(
    _ action: ClaimLifecycle.ClaimedAction, _ code: Problem.Code,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    switch action {
    case .refuse(let problem), .undo(_, let problem):
      #expect(problem.code == code, sourceLocation: sourceLocation)
    default: Issue.record("\(action)", sourceLocation: sourceLocation)
    }
  }

  @Test(
    arguments: [
      .granted(.sample()), .taken(.inFlight(leaseLeft: 700, attempt: 1)), .taken(.completed(.sample())),
      .taken(.unknown(age: 5, attempt: 1)), .taken(.expired(attempt: 1)), .mismatch,
      .otherRecipe(Recipe(body: .raw)),
    ] as [ClaimOutcome], [StoreError.unavailable("away"), .fateUnknown("cut")])
  func `never runs without the store once the store has reported it`(outcome: ClaimOutcome, error: StoreError)
  {
    var known: KnownRecord?
    var lifecycle = ClaimLifecycle(route: .sample { $0.onStoreFailure = .open })
    _ = lifecycle.replied(.success(outcome), to: Self.request(), isDown: true, known: &known, now: Self.now)
    let before = known
    expectRefusal(Self.step(&known, Self.request(), error), .storeUnavailable)
    #expect(known == before && known != nil)
  }

  @Test(
    arguments: [
      .success(.mismatch), .success(.otherRecipe(Recipe(body: .raw))), .failure(.unreadable("damaged")),
    ] as [ClaimReply])
  func `is known for as long as a record may last whose state the store has not reported`(reply: ClaimReply) {
    var known: KnownRecord?
    var lifecycle = ClaimLifecycle(route: .sample { $0.onStoreFailure = .open })
    _ = lifecycle.replied(reply, to: Self.request(), isDown: false, known: &known, now: Self.now)
    // A lease of half a minute, and a minute each for the unknown outcome and its tombstone.
    #expect(known?.hasExpired(now: Self.now + .seconds(150) - 1) == false)
    #expect(known?.hasExpired(now: Self.now + .seconds(150)) == true)
  }

  @Test(arguments: [
    KnownRecord.State.owned, .unprotected(releasedUntil: nil), .taken(until: now + 1000),
    .released(until: now + 1000),
  ])
  func `refuses another payload in every state`(state: KnownRecord.State) {
    var known: KnownRecord? = KnownRecord(state, fingerprint: Self.print)
    expectRefusal(Self.step(&known, Self.request(Self.otherPrint)), .payloadMismatch)
    let raw = Fingerprint(recipe: Recipe(body: .raw), digest: .sample(3))
    expectRefusal(Self.step(&known, Self.request(raw)), .storeUnavailable)
  }

  @Test func `lets one delivery of an unknown record run at a time`() {
    var known: KnownRecord?
    guard case .forwardUnprotected(unused: nil) = Self.step(&known, Self.request(owner: 1)) else {
      Issue.record("an unknown record did not run")
      return
    }
    expectRefusal(Self.step(&known, Self.request(owner: 2)), .storeUnavailable)
    known = known?.ended(unprotected: Self.request(owner: 2), isLost: false, now: Self.now)
    expectRefusal(Self.step(&known, Self.request(owner: 2)), .storeUnavailable)
    known = known?.ended(unprotected: Self.request(owner: 1), isLost: false, now: Self.now)
    #expect(known == nil)
    guard case .forwardUnprotected = Self.step(&known, Self.request(owner: 2)) else {
      Issue.record("a record that nobody works on did not run")
      return
    }
    known = known?.ended(unprotected: Self.request(owner: 2), isLost: true, now: Self.now)
    expectRefusal(Self.step(&known, Self.request(owner: 3)), .storeUnavailable)
  }

  @Test func `is not sent beside a run without the store, although the store grants it`() {
    var known: KnownRecord?
    _ = Self.step(&known)
    let before = known
    var lifecycle = ClaimLifecycle(route: .sample { $0.onStoreFailure = .open })
    expectRefusal(
      lifecycle.replied(
        .success(.granted(.sample())), to: Self.request(), isDown: true, known: &known, now: Self.now),
      .storeUnavailable)
    #expect(known == before)
  }

  /// A run without the store whose response was lost.
  private static func lost() -> KnownRecord? {
    var known: KnownRecord?
    _ = step(&known)
    return known?.ended(unprotected: request(), isLost: true, now: now)
  }

  @Test(arguments: RoutePolicy.OnUnknown.allCases)
  func `uses a granted claim only to mark a lost run unknown`(onUnknown: RoutePolicy.OnUnknown) {
    var known = Self.lost()
    let route = Route.sample {
      $0.onStoreFailure = .open
      $0.onUnknown = onUnknown
    }
    for _ in 0..<2 {
      var lifecycle = ClaimLifecycle(route: route)
      let claim = Claim.sample()
      let action = lifecycle.replied(
        .success(.granted(claim)), to: Self.request(), isDown: true, known: &known, now: Self.now)
      guard case .undo(let unused, let problem) = action else {
        Issue.record("\(action)")
        return
      }
      #expect(problem == .outcomeUnknown(retryAfter: .seconds(30)) && unused == .keptUnknown(claim))
      // Until the store has marked it, and whatever another owner does meanwhile.
      var other = ClaimLifecycle(route: route)
      let inFlight = ClaimOutcome.taken(.inFlight(leaseLeft: 5, attempt: 1))
      _ = other.replied(.success(inFlight), to: Self.request(), isDown: true, known: &known, now: Self.now)
      #expect(known == Self.lost())
    }
    known = known?.markedUnknown()
    var lifecycle = ClaimLifecycle(route: route)
    guard
      case .forward = lifecycle.replied(
        .success(.granted(.sample())), to: Self.request(), isDown: true, known: &known, now: Self.now)
    else {
      Issue.record("a record that the store knows as unknown is the store's to grant")
      return
    }
  }

  /// Each payload has a recipe of its own on a route that explains mismatches.
  @Test func `compares payloads whose members have digests, and fingerprints of before there were any`() {
    func explained(_ print: Fingerprint, _ value: UInt32) -> Fingerprint {
      let members = MemberDigests(members: [.init(name: 1, value: value)], isCut: false)
      return Fingerprint(recipe: print.recipe.explaining(members), digest: print.digest)
    }
    let (own, other) = (explained(Self.print, 2), explained(Self.otherPrint, 3))
    for state in [KnownRecord.State.owned, .released(until: Self.now + .seconds(1))] {
      for known in [Self.print, own] {
        let record = KnownRecord(state, fingerprint: known)
        #expect(record.conflict(with: other) == .otherPayload)
        #expect(record.conflict(with: own) == record.conflict(with: Self.print))
        #expect(record.conflict(with: own) == (state == .owned ? .duplicate : nil))
      }
    }
  }

  @Test func `releases the claim of another payload after a lost run`() {
    var known = Self.lost()
    let route = Route.sample { $0.onStoreFailure = .open }
    var lifecycle = ClaimLifecycle(route: route)
    let claim = Claim.sample(fingerprint: Self.otherPrint)
    let action = lifecycle.replied(
      .success(.granted(claim)), to: Self.request(Self.otherPrint), isDown: true, known: &known, now: Self.now
    )
    guard case .undo(let unused, let problem) = action else {
      Issue.record("\(action)")
      return
    }
    #expect(problem.code == .payloadMismatch && unused == .givenBack(claim, by: route.policy))
    #expect(known == Self.lost())
  }

  /// The record may be this process's own unused claim, which is still to be given back.
  @Test(arguments: [
    Standing.inFlight(leaseLeft: 5, attempt: 1), .unknown(age: 5, attempt: 1), .released(attempt: 1), .absent,
  ])
  func `stays lost as long as the record may become free`(standing: Standing) {
    let known = KnownRecord.after(.taken(standing), to: Self.request(), from: Self.lost(), now: Self.now)
    #expect(known == Self.lost())
  }

  @Test func `leaves a claim without a reply to lapse beside a lost run`() {
    var known = Self.lost()
    let action = Self.step(&known, Self.request(owner: 2), .fateUnknown("lost"))
    guard case .refuse(let problem) = action else {
      Issue.record("\(action)")
      return
    }
    #expect(problem.code == .storeUnavailable && known == Self.lost())
  }

  @Test func `another payload does not even claim beside a run without the store`() throws {
    var running: KnownRecord?
    _ = Self.step(&running)
    func refusal(_ known: KnownRecord, of print: Fingerprint) -> ClaimLifecycle.ClaimedAction? {
      var lifecycle = ClaimLifecycle(route: .sample { $0.onStoreFailure = .open })
      return lifecycle.refused(beside: known, print)
    }
    for known in [Self.lost(), running] {
      let known = try #require(known)
      let action = try #require(refusal(known, of: Self.otherPrint))
      expectRefusal(action, .payloadMismatch)
      let own = refusal(known, of: Self.print)
      if let own { Issue.record("\(own)") }
    }
    for state in [KnownRecord.State.owned, .released(until: Self.now + .seconds(1))] {
      let action = refusal(KnownRecord(state, fingerprint: Self.print), of: Self.otherPrint)
      if let action { Issue.record("\(action)") }
    }
  }

  @Test(arguments: [Standing.completed(.sample()), .expired(attempt: 1)])
  func `ends a lost run once the store reports its end`(standing: Standing) {
    let known = KnownRecord.after(.taken(standing), to: Self.request(), from: Self.lost(), now: Self.now)
    guard case .taken = known?.state else {
      Issue.record("\(String(describing: known))")
      return
    }
  }

  @Test func `is known to the end of its tombstone, although the end of its outcome was moved`() {
    // Two hours of a stop lie between the two times, which an embedded store adds to all ends.
    let record = CompletedRecord(
      outcome: .statusOnly(status: 201, location: nil), recordedAt: StoreInstant(milliseconds: 0),
      expiresAt: StoreInstant(milliseconds: 7_230_000), remaining: 1000, attempt: 1)
    var known = KnownRecord.after(.taken(.completed(record)), to: Self.request(), from: nil, now: Self.now)
    let (retention, remember) = (Milliseconds.seconds(30), Milliseconds.seconds(60))
    let last = Self.now + record.remaining + (remember - retention) - 1
    #expect(known?.hasExpired(now: last) == false)
    expectRefusal(Self.step(&known, now: last), .storeUnavailable)
  }

  @Test func `runs with its payload once released, and is released after it`() {
    let until = Self.now + 1000
    var known: KnownRecord? = KnownRecord(.released(until: until), fingerprint: Self.print)
    guard case .forwardUnprotected = Self.step(&known) else {
      Issue.record("a released record did not run")
      return
    }
    #expect(known?.isRunningHere == true)
    known = known?.ended(unprotected: Self.request(), isLost: false, now: Self.now)
    #expect(known?.state == .released(until: until))
  }

  @Test func `follows its owner's end, and not that of a superseded owner`() {
    let claim = Claim.sample()
    let owned = KnownRecord(.owned, owner: claim.owner, fingerprint: Self.print)
    func end(_ end: KnownRecord.OwnEnd, _ outcome: OwnerOutcome? = .done) -> KnownRecord.State? {
      owned.ended(by: claim, as: end, outcome, now: Self.now)?.state
    }
    #expect(end(.completed(500)) == .taken(until: Self.now + 500))
    #expect(end(.completed(500), nil) == .taken(until: Self.now + 500))
    #expect(end(.unknown) == .taken(until: Self.now + .seconds(120)))
    #expect(end(.released) == .released(until: Self.now + .seconds(60)))
    #expect(end(.deleted) == nil)
    #expect(end(.released, .lost(.completed(.sample()))) == .taken(until: Self.now + 68_000))
    #expect(end(.completed(500), .lost(.absent)) == nil)
    #expect(end(.completed(500), .replaced) == .taken(until: Self.now + .seconds(120)))
    let other = KnownRecord(.owned, owner: OwnerToken(high: 7, low: 7), fingerprint: Self.print)
    #expect(other.ended(by: claim, as: .deleted, .done, now: Self.now) == other)
  }

  @Test func `is not changed by a duplicate's reply while it is running`() {
    let claim = Claim.sample()
    let owned = KnownRecord(.owned, owner: claim.owner, fingerprint: Self.print)
    let reply = ClaimOutcome.taken(.inFlight(leaseLeft: 5, attempt: 1))
    #expect(KnownRecord.after(reply, to: Self.request(), from: owned, now: Self.now) == owned)
  }
}

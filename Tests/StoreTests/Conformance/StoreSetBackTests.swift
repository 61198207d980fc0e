import Idempotency
import Platform
import Testing

/// Records that were written before the store's clock was set back, in every store whose clock a test can set.
@Suite(.timeLimit(.minutes(2)))
struct StoreSetBackTests {
  private static let dayBack: Int64 = -86_400

  /// Runs a test on two handles of the same data, with a call that sets the clock.
  private static func run(
    _ kind: StoreUnderTest,
    _ test: (any RecordStore, any RecordStore, @Sendable (Int64) async throws -> Void) async throws -> Void
  ) async throws {
    try await kind.runOpened { opened in
      try await test(opened.store, opened.other, try #require(opened.setClock))
    }
  }

  @Test(arguments: StoreUnderTest.withOwnClock)
  func `the claim of a crashed owner lapses a lease after the first look`(_ kind: StoreUnderTest) async throws
  {
    try await Self.run(kind) { store, other, setClock async throws in
      let claim = try await store.granted(Samples.request(lease: .seconds(2)))
      try await setClock(Self.dayBack)
      let looked = BootInstant.now
      let first = try await other.claim(Samples.again(claim, takeOver: .afterSettle(0)))
      guard case .taken(.inFlight(let left, attempt: 1)) = first else { throw Unexpected(what: "\(first)") }
      #expect(left > .seconds(1) && left <= .seconds(2))
      let next = try await Self.takeOver(claim, of: other, afterSettle: 0)
      #expect(BootInstant.now - looked >= 1900)
      #expect(next.attempt == 2 && next.followsUnknown)
    }
  }

  @Test(arguments: StoreUnderTest.withOwnClock)
  func `an unknown outcome settles from the first look on`(_ kind: StoreUnderTest) async throws {
    try await Self.run(kind) { store, other, setClock async throws in
      let claim = try await store.granted(Samples.request())
      #expect(try await store.markUnknown(claim) == .done)
      try await setClock(Self.dayBack)
      let looked = BootInstant.now
      #expect(try await other.claim(Samples.again(claim, takeOver: .afterSettle(0))).taken == .unknown)
      let next = try await Self.takeOver(claim, of: other, afterSettle: .seconds(1))
      #expect(BootInstant.now - looked >= 900)
      #expect(next.attempt == 2 && next.followsUnknown)
    }
  }

  @Test(arguments: StoreUnderTest.withOwnClock)
  func `an operator needs no delivery to have a lease lapse`(_ kind: StoreUnderTest) async throws {
    try await Self.run(kind) { store, other, setClock async throws in
      let claims = [
        try await store.granted(Samples.request(lease: .seconds(1))),
        try await store.granted(Samples.request(lease: .seconds(1))),
      ]
      try await setClock(Self.dayBack)
      #expect(try await other.find(claims[0].id).name == .inFlight)
      #expect(try await other.resolve(claims[1].id, as: .notApplied).lost == .inFlight)
      try await other.until(claims[0].id) { $0.name == .unknown }
      try await until("the decision is taken") {
        try await other.resolve(claims[1].id, as: .notApplied) == .done
      }
    }
  }

  @Test(arguments: StoreUnderTest.withOwnClock, [false, true])
  func `a live owner keeps its whole lease`(_ kind: StoreUnderTest, renewsFirst: Bool) async throws {
    try await Self.run(kind) { store, other, setClock async throws in
      let claim = try await store.granted(Samples.request())
      try await setClock(Self.dayBack)
      if renewsFirst { #expect(try await store.renew(claim) == .done) }
      let request = Samples.again(claim, takeOver: .afterSettle(0))
      guard case .taken(.inFlight(let left, attempt: 1)) = try await other.claim(request) else {
        throw Unexpected(what: "the record is not in flight")
      }
      #expect(left > .seconds(30) && left <= .seconds(60))
      if !renewsFirst { #expect(try await store.renew(claim) == .done) }
      #expect(try await other.claim(Samples.again(claim, takeOver: .afterSettle(0))).taken == .inFlight)
      #expect(try await store.complete(claim, with: Samples.completion()).outcome == .done)
      #expect(try await other.claim(Samples.again(claim)).taken == .completed)
    }
  }

  /// By the time of the look the record is a day old then, and remembered for twenty minutes.
  @Test(arguments: StoreUnderTest.withOwnClock)
  func `no record is gone when the clock is set right again`(_ kind: StoreUnderTest) async throws {
    try await Self.run(kind) { store, other, setClock async throws in
      let claim = try await store.granted(Samples.request())
      try await setClock(Self.dayBack)
      #expect(try await other.find(claim.id).name == .inFlight)
      try await setClock(0)
      #expect(try await other.find(claim.id) == .expired(attempt: 1))
      #expect(try await store.complete(claim, with: Samples.completion()).outcome == .done)
    }
  }

  @Test(arguments: StoreUnderTest.withOwnClock)
  func `a record's age counts from the first look, or from its loss`(_ kind: StoreUnderTest) async throws {
    try await Self.run(kind) { store, other, setClock async throws in
      let held = try await store.granted(Samples.request())
      let lost = try await store.granted(Samples.request())
      try await setClock(Self.dayBack)
      #expect(try await store.markUnknown(lost) == .done)
      for claim in [held, lost] {
        try await until("it has an age") { (try await other.inspect(claim.id)?.age ?? 0) > 0 }
      }
    }
  }

  @Test(arguments: StoreUnderTest.withOwnClock)
  func `a list is a look from which a record's age counts`(_ kind: StoreUnderTest) async throws {
    try await Self.run(kind) { store, other, setClock async throws in
      let claim = try await store.granted(Samples.request())
      try await setClock(Self.dayBack)
      try await until("it has an age") { (try await other.open()[claim.id]?.age ?? 0) > 0 }
    }
  }

  /// Claims until the record is taken over, with a lease so short that the pause after a step does not matter.
  private static func takeOver(
    _ claim: Claim, of store: any RecordStore, afterSettle settle: Milliseconds
  ) async throws -> Claim {
    var granted: Claim?
    try await until("the record is taken over") {
      let request = Samples.again(claim, takeOver: .afterSettle(settle)).changed(lease: 100)
      if case .granted(let next) = try await store.claim(request) { granted = next }
      return granted != nil
    }
    return try #require(granted)
  }
}

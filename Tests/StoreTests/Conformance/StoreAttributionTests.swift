import Idempotency
import NIOCore
import Testing

/// The origin of records, as every store keeps it for operators.
@Suite(.timeLimit(.minutes(2)))
struct StoreAttributionTests {
  @Test(arguments: StoreUnderTest.all)
  func `a record names its origin in every state`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let origin = Samples.attribution()
      let request = Samples.request(attribution: origin)
      let claim = try await store.granted(request)
      func expectOrigin(_ state: Standing.Name, _ place: SourceLocation = #_sourceLocation) async throws {
        let view = try #require(try await other.inspect(claim.id), sourceLocation: place)
        #expect(view.standing.name == state, sourceLocation: place)
        #expect(view.attribution == origin && view.cause == nil, sourceLocation: place)
        #expect(view.firstSeen == claim.firstSeen, sourceLocation: place)
      }
      #expect(claim.attribution == origin)
      try await expectOrigin(.inFlight)
      #expect(try await store.renew(claim) == .done)
      try await expectOrigin(.inFlight)
      #expect(try await store.release(claim, .remembered) == .done)
      try await expectOrigin(.released)
      let second = try await store.granted(Samples.again(claim, attribution: origin))
      #expect(second.attempt == 2 && second.attribution == origin)
      let response = Samples.response(body: String(repeating: "x", count: 9000))
      #expect(
        try await store.complete(second, with: Samples.completion(.whole(response))).outcome == .done)
      try await expectOrigin(.completed)
      #expect(try await other.claim(Samples.again(claim)).taken == .completed)
      #expect(try await other.unreadable().isEmpty)
      #expect(try await store.forget(claim.id, fence: .seconds(60)))
      #expect(try await other.inspect(claim.id) == nil)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a small response, none and a location are read beside an origin`(_ kind: StoreUnderTest) async throws
  {
    try await kind.run { store, other async throws in
      let outcomes: [Outcome] = [
        .whole(Samples.response()), .statusOnly(status: 201, location: nil),
        .statusOnly(status: 201, location: "/orders/7"),
      ]
      for outcome in outcomes {
        let origin = Samples.attribution()
        let claim = try await store.completed(
          Samples.request(attribution: origin), with: Samples.completion(outcome))
        #expect(try await other.find(claim.id, opening: nil).completedRecord?.outcome == outcome)
        #expect(try await other.inspect(claim.id)?.attribution == origin)
      }
      #expect(try await other.unreadable().isEmpty)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `the origin is that of the latest attempt`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let (first, later) = (Samples.attribution(), Samples.attribution(route: "renamed", node: "node-2"))
      let claim = try await store.granted(Samples.request(attribution: first))
      #expect(try await store.release(claim, .remembered) == .done)
      let second = try await other.granted(Samples.again(claim, attribution: later))
      #expect(try await store.inspect(claim.id)?.attribution == later)
      #expect(try await store.markUnknown(second, because: .timeOut) == .done)
      let third = try await store.granted(
        Samples.again(claim, takeOver: .afterSettle(0), attribution: first))
      #expect(third.followsUnknown)
      let view = try #require(try await other.inspect(claim.id))
      #expect(view.attribution == first && view.cause == nil)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an unknown outcome states its cause until it has an end`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      for cause in [LossCause.timeOut, .connectionLost, .status, .shutdown] {
        let claim = try await store.granted(Samples.request(attribution: Samples.attribution()))
        #expect(try await store.markUnknown(claim, because: cause) == .done)
        #expect(try await other.inspect(claim.id)?.cause == cause)
        #expect(try await other.open()[claim.id]?.cause == cause)
        // The first cause counts.
        #expect(try await store.markUnknown(claim, because: .noMemory) == .done)
        #expect(try await other.inspect(claim.id)?.cause == cause)
        #expect(try await store.complete(claim, with: Samples.completion()).outcome == .done)
        let view = try #require(try await other.inspect(claim.id))
        #expect(view.cause == nil && view.attribution == claim.attribution)
      }
      // The store has lost the record meanwhile.
      let lost = try await store.granted(Samples.request(attribution: Samples.attribution()))
      #expect(try await store.forget(lost.id, fence: 0))
      #expect(try await store.markUnknown(lost, because: .timeOut) == .done)
      #expect(try await other.inspect(lost.id)?.cause == .timeOut)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a lapsed lease is a cause of its own`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let origin = Samples.attribution()
      let claim = try await store.lapsed(Samples.request(attribution: origin))
      let view = try #require(try await other.open()[claim.id])
      #expect(view.cause == .leaseLapsed && view.attribution == origin)
      let marked = try await store.granted(Samples.request())
      #expect(try await store.markUnknown(marked) == .done)
      #expect(try await other.inspect(marked.id)?.cause == nil)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an operator's resolution leaves the origin`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let outcomes: [Resolution] = [
        .notApplied, .applied(Samples.completion()),
        .applied(Samples.completion(.statusOnly(status: 201, location: "/a"))),
      ]
      for resolution in outcomes {
        let origin = Samples.attribution()
        let claim = try await store.granted(Samples.request(attribution: origin))
        #expect(try await store.markUnknown(claim, because: .timeOut) == .done)
        for _ in 0..<2 {
          #expect(try await store.resolve(claim.id, as: resolution, amending: true) == .done)
          let view = try #require(try await other.inspect(claim.id))
          #expect(view.attribution?.route == "orders" && view.cause == nil)
          #expect(view.firstSeen == claim.firstSeen)
          #expect(view.attribution?.keyDigest == origin.keyDigest)
          #expect(view.standing.name == (resolution == .notApplied ? .released : .completed))
        }
      }
      #expect(try await other.unreadable().isEmpty)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `records are searched by key, caller and route in every state`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let alice = Samples.attribution()
      let bob = Samples.attribution(route: "refunds", keyDigest: alice.keyDigest)
      let open = try await store.granted(Samples.request(attribution: alice))
      let completed = try await store.completed(Samples.request(attribution: bob))
      let released = try await store.granted(Samples.request(attribution: alice))
      #expect(try await store.release(released, .remembered) == .done)
      let forgotten = try await store.completed(Samples.request(attribution: alice))
      #expect(try await store.forget(forgotten.id, fence: .seconds(60)))
      // More than one part holds, of other origins and of none. A part of the embedded store has a thousand.
      for number in 0..<(kind.testDescription == StoreUnderTest.embedded.testDescription ? 1200 : 250) {
        let origin = number % 2 == 0 ? Samples.attribution() : nil
        _ = try await store.granted(Samples.request(attribution: origin))
      }
      let key = try #require(alice.keyDigest)
      let ofKey = try await other.found(RecordFilter(keyDigests: ["00000000", key]))
      #expect(ofKey == [open.id, completed.id, released.id])
      #expect(
        try await other.found(RecordFilter(callerDigest: alice.callerDigest)) == [open.id, released.id])
      #expect(
        try await other.found(RecordFilter(keyDigests: [key], route: "refunds")) == [completed.id])
      #expect(
        try await other.found(
          RecordFilter(keyDigests: [key], callerDigest: bob.callerDigest, route: "orders")
        ).isEmpty)
      await #expect(throws: StoreError.self) {
        try await store.search(RecordFilter(keyDigests: [key]), after: "not a cursor")
      }
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a record without an origin is as good as any other`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let claim = try await store.granted(Samples.request())
      let view = try #require(try await other.inspect(claim.id))
      #expect(view.attribution == nil && view.standing.name == .inFlight)
      #expect(try await other.open()[claim.id]?.attribution == nil)
      #expect(try await store.release(claim, .remembered) == .done)
      let origin = Samples.attribution()
      let second = try await store.granted(Samples.again(claim, attribution: origin))
      #expect(try await other.inspect(claim.id)?.attribution == origin)
      #expect(try await store.complete(second, with: Samples.completion()).outcome == .done)
      #expect(try await other.inspect(Samples.id()) == nil)
    }
  }
}

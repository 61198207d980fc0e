import Idempotency
import Platform
import Testing

/// Waiting for a record's end, in every store.
struct StoreWatchTests {
  /// Far longer than a push takes; a wait that lasts so long has missed it.
  static let long = Milliseconds.seconds(20)

  /// The commands that end a record, or free it, and the state that it is in then.
  enum End: CaseIterable {
    case complete, release, delete, markUnknown, forget, resolve

    func run(_ claim: Claim, on store: any RecordStore) async throws {
      switch self {
      case .complete: #expect(try await store.complete(claim, with: Samples.completion()).outcome == .done)
      case .release: #expect(try await store.release(claim, .remembered) == .done)
      case .delete: #expect(try await store.release(claim, .deleted) == .done)
      case .markUnknown: #expect(try await store.markUnknown(claim) == .done)
      case .forget: #expect(try await store.forget(claim.id, fence: 10))
      case .resolve: #expect(try await store.resolve(claim.id, as: .notApplied) == .done)
      }
    }
  }

  @Test(arguments: StoreUnderTest.all, End.allCases)
  func `a waiter is woken by the end of the record`(_ kind: StoreUnderTest, _ end: End) async throws {
    try await kind.run { store, other async throws in
      let claim =
        end == .resolve ? try await store.lapsed() : try await store.granted(Samples.request())
      let watch = try await other.watch(claim.id)
      // Subscriptions of other kinds may wake once for themselves: a waiter looks and waits again.
      let before = try await other.find(claim.id).name
      async let ended: Standing.Name = Self.wait(watch, for: claim.id, on: other, until: { $0 != before })
      try await end.run(claim, on: store)
      #expect(try await ended != before)
      watch.cancel()
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `an end between the subscription and the wait is not missed`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let claim = try await store.granted(Samples.request())
      let watch = try await other.watch(claim.id)
      #expect(try await store.complete(claim, with: Samples.completion()).outcome == .done)
      let name = try await Self.wait(watch, for: claim.id, on: other, until: { $0 == .completed })
      #expect(name == .completed)
      watch.cancel()
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `every waiter is woken, and one that left is not missed`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store, other async throws in
      let claim = try await store.granted(Samples.request())
      try await store.watch(claim.id).cancel()
      let woken = try await withThrowingTaskGroup(of: Void.self) { group in
        var watches: [any RecordWatch] = []
        for index in 0..<20 { watches.append(try await (index % 2 == 0 ? store : other).watch(claim.id)) }
        for (index, watch) in watches.enumerated() {
          group.addTask {
            let handle = index % 2 == 0 ? store : other
            _ = try await Self.wait(watch, for: claim.id, on: handle, until: { $0 == .released })
            watch.cancel()
          }
        }
        #expect(try await store.release(claim, .remembered) == .done)
        return try await group.reduce(0) { count, _ in count + 1 }
      }
      #expect(woken == 20)
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `a wait ends when its span is over`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let claim = try await store.granted(Samples.request())
      let watch = try await store.watch(claim.id)
      let started = BootInstant.now.nanoseconds
      await watch.changed(within: 30)
      await watch.changed(within: 30)
      #expect(BootInstant.now.nanoseconds - started < Self.long.count * 1_000_000)
      #expect(try await store.find(claim.id).name == .inFlight)
      watch.cancel()
    }
  }

  @Test(arguments: StoreUnderTest.all)
  func `the end of another record wakes nobody for long`(_ kind: StoreUnderTest) async throws {
    try await kind.run { store async throws in
      let mine = try await store.granted(Samples.request())
      let other = try await store.granted(Samples.request())
      let watch = try await store.watch(mine.id)
      #expect(try await store.complete(other, with: Samples.completion()).outcome == .done)
      #expect(try await store.complete(mine, with: Samples.completion()).outcome == .done)
      #expect(
        try await Self.wait(watch, for: mine.id, on: store, until: { $0 == .completed }) == .completed)
      watch.cancel()
    }
  }

  /// Waits as the proxy does: looks, and waits for the next change where that is not the one. Fails where a
  /// push was missed: the wait itself must end early.
  static func wait(
    _ watch: any RecordWatch, for id: RecordID, on store: any RecordStore,
    until ended: @Sendable (Standing.Name) -> Bool
  ) async throws -> Standing.Name {
    while true {
      let name = try await store.find(id).name
      if ended(name) { return name }
      let started = BootInstant.now.nanoseconds
      await watch.changed(within: long)
      guard BootInstant.now.nanoseconds - started < long.count * 1_000_000 else {
        throw Unexpected(what: "woken by the span alone")
      }
    }
  }
}

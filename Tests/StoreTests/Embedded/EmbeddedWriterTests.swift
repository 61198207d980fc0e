import Foundation
import GRDB
import Idempotency
import Logging
import NIOCore
import Platform
import TestSupport
import Testing

@testable import Store

/// The embedded store's writer: groups, sweeping, waiters, its end.
struct EmbeddedWriterTests {
  private func withStore(_ body: (EmbeddedStore, String) async throws -> Void) async throws {
    let directory = TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let path = directory.file("semel.db")
    let store = try EmbeddedStore(path: path, logger: Logger(label: "test"))
    try await body(store, path)
    await store.close()
  }

  @Test func `concurrent commands share a commit`() async throws {
    try await withStore { store, _ async throws in
      var claims: [Claim] = []
      for _ in 0..<200 { claims.append(try await store.granted(Samples.request())) }
      let before = store.figures.commits
      #expect(before == 200)
      try await withThrowingTaskGroup { group in
        for claim in claims {
          group.addTask { () async throws in
            #expect(try await store.complete(claim, with: Samples.completion()).outcome == .done)
          }
        }
        try await group.waitForAll()
      }
      #expect(store.figures.commits - before < 100)
      for claim in claims { #expect(try await store.find(claim.id).name == .completed) }
    }
  }

  /// The bodies that claims of these records return, which come together while the file is locked.
  private func bodies(
    of claims: [Claim], on store: EmbeddedStore, _ path: String
  ) async throws -> [ByteBuffer] {
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    let operatorShell = try DatabaseQueue(path: path, configuration: configuration)
    try await operatorShell.writeWithoutTransaction { try $0.execute(sql: "BEGIN EXCLUSIVE") }
    let replies = Watched<[ClaimReply]>([])
    for claim in claims {
      // It is in the writer's queue when this returns.
      store.startClaim(Samples.again(claim)) { reply in replies.withValue { $0.append(reply) } }
    }
    try await operatorShell.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
    let all = try await replies.until("all replies", within: .seconds(30)) {
      $0.count == claims.count ? $0 : nil
    }
    return try all.map { reply in
      guard case .taken(let standing) = try reply.get(),
        case .whole(let response) = standing.completedRecord?.outcome
      else { throw Unexpected(what: "no completed record") }
      return response.body
    }
  }

  private static func large(_ byte: Character) -> Completion {
    let response = Samples.response(body: String(repeating: byte, count: 1 << 20))
    return Completion(outcome: .whole(response), retention: .seconds(60), remember: .seconds(60))
  }

  @Test func `concurrent claims of one large record hold its response once`() async throws {
    try await withStore { store, path async throws in
      let claim = try await store.completed(with: Self.large("x"))
      let bodies = try await bodies(of: Array(repeating: claim, count: 40), on: store, path)
      let places = Set(bodies.map { $0.withUnsafeReadableBytes { UInt(bitPattern: $0.baseAddress) } })
      // One for each group: the first claim is one of its own.
      #expect(bodies.count == 40 && places.count <= 4, "\(places.count)")
    }
  }

  @Test func `many large responses are read in several groups, and each claim gets its own`() async throws {
    try await withStore { store, path async throws in
      var claims: [Claim] = []
      for byte in "abcdefghijklmnopqrstuvwxyz" {
        claims.append(try await store.completed(with: Self.large(byte)))
      }
      let bodies = try await bodies(of: claims, on: store, path)
      #expect(bodies.allSatisfy { $0.readableBytes == 1 << 20 })
      #expect(Set(bodies.compactMap { $0.readableBytesView.first }).count == 26)
    }
  }

  @Test func `a command without a change is not committed`() async throws {
    try await withStore { store, _ async throws in
      let claim = try await store.completed()
      let before = store.figures.commits
      #expect(try await store.claim(Samples.again(claim)).taken == .completed)
      #expect(try await store.find(claim.id).name == .completed)
      #expect(try await store.complete(claim, with: Samples.completion()).outcome == .done)
      #expect(store.figures.commits == before)
    }
  }

  @Test func `expired records are swept from the file`() async throws {
    try await withStore { store, path async throws in
      // More than one batch of the sweeper.
      let over = try await complete(600, Samples.completion(retention: 1, remember: 1), on: store)
      let tombstones = try await complete(10, Samples.completion(retention: 1), on: store)
      let kept = try await complete(10, Samples.completion(), on: store)
      let giveUp = BootInstant.now.nanoseconds + 40_000_000_000
      while store.figures.swept < 610, BootInstant.now.nanoseconds < giveUp {
        try await Task.sleep(nanoseconds: 5_000_000)
      }
      #expect(store.figures.swept == 610)
      #expect(try await store.find(over[0].id) == .absent)
      #expect(try await store.find(tombstones[0].id) == .expired(attempt: 1))
      #expect(try await store.claim(Samples.changed(tombstones[0])) == .mismatch)
      #expect(try await store.find(kept[0].id).name == .completed)
      let reader = try DatabaseQueue(path: path)
      let (records, responses) = try await reader.read { database in
        (
          try Int.fetchOne(database, sql: "SELECT count(*) FROM record"),
          try Int.fetchOne(database, sql: "SELECT count(*) FROM response")
        )
      }
      #expect(records == 20)
      #expect(responses == 10)
    }
  }

  private func complete(
    _ count: Int, _ completion: Completion, on store: EmbeddedStore
  ) async throws -> [Claim] {
    try await withThrowingTaskGroup(of: Claim.self) { group in
      for _ in 0..<count { group.addTask { try await store.completed(with: completion) } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
  }

  @Test func `a response leaves the file with its record`() async throws {
    try await withStore { store, path async throws in
      let forgotten = try await store.completed()
      #expect(try await store.forget(forgotten.id, fence: .seconds(60)))
      let again = try await store.completed(with: Samples.completion(retention: 1, remember: 1))
      try await store.until(again.id) { $0 == .absent }
      _ = try await store.granted(Samples.again(again))
      let reader = try DatabaseQueue(path: path)
      let responses = try await reader.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM response") }
      #expect(responses == 0)
    }
  }

  @Test func `a waiter that leaves is forgotten`() async throws {
    try await withStore { store, _ async throws in
      let id = Samples.id()
      let watches = [
        try await store.watch(id), try await store.watch(id), try await store.watch(Samples.id()),
      ]
      #expect(store.waiterCount == 3)
      for watch in watches { watch.cancel() }
      #expect(store.waiterCount == 0)
    }
  }

  @Test func `closing runs waiting commands, and refuses later ones`() async throws {
    try await withStore { store, _ async throws in
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<100 {
          group.addTask {
            do throws(StoreError) {
              _ = try await store.claim(Samples.request())
            } catch {
              #expect(error == .unavailable("the store is closed"))
            }
          }
        }
        group.addTask { await store.close() }
      }
      await #expect(throws: StoreError.unavailable("the store is closed")) {
        try await store.claim(Samples.request())
      }
    }
  }
}

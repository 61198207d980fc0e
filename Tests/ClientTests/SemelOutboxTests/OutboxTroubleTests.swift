import ClientTestSupport
import Foundation
import GRDB
import HTTPTypes
import SemelClient
@testable import SemelOutbox
import Synchronization
import Testing

/// Disks, files, hosts and credentials that fail, and settings without an end.
struct OutboxTroubleTests {
  @Test func `the application's change is written with the end, and an error of it loses nothing`()
    async throws
  {
    struct Failed: Error {}
    let failures = Mutex(2)
    var settings = Outbox.Settings()
    settings.onEnd = { db, _, outcome in
      try db.execute(sql: "INSERT INTO note VALUES (?)", arguments: [outcome == .expired ? "no" : "done"])
      if failures.withLock({ count in
        count -= 1; return count >= 0
      }) {
        throw Failed()
      }
    }
    let rig = try Rig([.success(.executed(201))])
    let outbox = try await rig.outbox(settings)
    let intent = try await outbox.enqueue(order)
    let running = Task { await outbox.runDue() }
    while try await outbox.outcomeIfEnded(of: intent) == nil { rig.clock.advance(by: .seconds(5)) }
    _ = await running.value
    #expect(try rig.notes == ["done"])
    #expect(try await outbox.outcome(of: intent) == .completed(.executed(201), wasReplayed: false))
    #expect(rig.server.requests.count == 1)
  }

  @Test func `a full disk is reported, and the queue goes on when there is room`() async throws {
    let rig = try Rig([.success(.executed(201))])
    let outbox = try await rig.outbox()
    let safe = try await outbox.enqueue(order)
    let pages = try await rig.database.write { db in
      let count = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
      return try Int.fetchOne(db, sql: "PRAGMA max_page_count = \(count)") ?? 0
    }
    #expect(pages > 0)
    let large = IntentRequest(method: .post, path: "/", body: .bytes(Array(repeating: 1, count: 100_000)))
    await #expect(throws: OutboxError.diskFull) { try await outbox.enqueue(large) }
    try await rig.database.write { db in try db.execute(sql: "PRAGMA max_page_count = 1000000") }
    let later = try await outbox.enqueue(large)
    await outbox.runDue()
    for intent in [safe, later] {
      #expect(try await outbox.outcome(of: intent) == .completed(.executed(201), wasReplayed: false))
    }
  }

  @Test func `a body that cannot be read for now is sent later, and one that is gone ends its intent`()
    async throws
  {
    let rig = try Rig([.success(.executed(201))])
    let outbox = try await rig.outbox()
    let (locked, gone) = (rig.folder.appending(path: "locked"), rig.folder.appending(path: "gone"))
    // A folder in the place of a file is there, and cannot be read.
    try FileManager.default.createDirectory(at: locked, withIntermediateDirectories: false)
    try Data([1]).write(to: gone)
    var intents: [QueuedIntent] = []
    for file in [locked, gone] {
      let request = IntentRequest(method: .post, path: "/", body: .file(file.path()))
      intents.append(try await outbox.enqueue(request))
    }
    try FileManager.default.removeItem(at: gone)
    await outbox.runDue()
    #expect(try await outbox.outcomeIfEnded(of: intents[0]) == nil)
    #expect(try await outbox.outcome(of: intents[1]) == .cancelled(.bodyUnreadable))
    try FileManager.default.removeItem(at: locked)
    try Data([7]).write(to: locked)
    rig.clock.advance(by: .seconds(1))
    await outbox.runDue()
    #expect(try await outbox.outcome(of: intents[0]) == .completed(.executed(201), wasReplayed: false))
    #expect(rig.server.bodies == [[7]])
  }

  @Test func `with an empty budget the queue waits, and loses nothing`() async throws {
    let rig = try Rig([.failure(.notSent("")), .failure(.notSent("")), .success(.executed(201))])
    let outbox = try await rig.outbox(budgets: RetryBudgets(.bucket(capacity: 1)))
    let intent = try await outbox.enqueue(order)
    for _ in 0..<3 {
      await outbox.runDue()
      rig.clock.advance(by: .seconds(33))
    }
    #expect(try await outbox.outcome(of: intent) == .completed(.executed(201), wasReplayed: false))
  }

  @Test func `in an outage an empty budget bounds how often a queue sends`() async throws {
    let rig = try Rig([.failure(.notSent(""))])
    var settings = Outbox.Settings()
    settings.maxParallel = 1000
    let outbox = try await rig.outbox(settings)
    for _ in 0..<200 { _ = try await outbox.enqueue(order) }
    for _ in 0..<10 {
      await outbox.runDue()
      rig.clock.advance(by: .seconds(1))
    }
    // Each intent once, the 35 that the budget pays for, and those whose random pause of up to 32 s was over.
    let sent = rig.server.requests.count
    #expect(sent >= 235 && sent < 350)
  }

  @Test func `without credentials the queue waits, and sends under the same key once there are some`()
    async throws
  {
    struct SignedOut: Error {}
    final class Source: CredentialSource {
      let isSignedIn = Atomic(false)
      func current() async throws -> HTTPFields {
        guard isSignedIn.load(ordering: .relaxed) else { throw SignedOut() }
        return [.authorization: "Bearer t"]
      }
      func refresh(refused: HTTPFields) async throws -> HTTPFields { throw SignedOut() }
    }
    let source = Source()
    let rig = try Rig([.success(.executed(201))])
    let outbox = try await rig.outbox(credentials: source)
    let intent = try await outbox.enqueue(order)
    await outbox.runDue()
    #expect(rig.server.requests.isEmpty)
    source.isSignedIn.store(true, ordering: .relaxed)
    rig.clock.advance(by: .seconds(1))
    await outbox.runDue()
    #expect(try await outbox.outcome(of: intent) == .completed(.executed(201), wasReplayed: false))
    #expect(rig.server.requests.map { $0.headerFields[.authorization] } == ["Bearer t"])
  }

  @Test func `settings without an end are settings all the same`() async throws {
    let rig = try Rig([.success(.executed(201))])
    var settings = Outbox.Settings()
    settings.leaseDuration = .seconds(Int64.max)
    settings.pollInterval = .seconds(Int64.max)
    rig.clock.advance(by: .seconds(1))
    let outbox = try await rig.outbox(settings)
    let intent = try await outbox.enqueue(order)
    let running = Task { try await outbox.run() }
    #expect(try await outbox.outcome(of: intent) == .completed(.executed(201), wasReplayed: false))
    running.cancel()
  }
}

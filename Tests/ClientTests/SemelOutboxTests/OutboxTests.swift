import ClientTestSupport
import Foundation
import GRDB
import HTTPTypes
import SemelClient
@testable import SemelOutbox
import Synchronization
import Testing

/// A database, a server and a time, on which outboxes are opened as processes would.
private final class Rig: Sendable {
  let database: any DatabaseWriter
  let server: ScriptedServer
  let clock = TestClock(isManual: true)
  private let folder: URL

  init(_ server: ScriptedServer) throws {
    self.server = server
    folder = FileManager.default.temporaryDirectory.appending(path: "semel-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    database = try DatabaseQueue(path: folder.appending(path: "app.sqlite").path())
    try database.write { db in try db.execute(sql: "CREATE TABLE note (text TEXT)") }
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  convenience init(_ ends: [Result<Response, TransportError>]) throws { try self.init(ScriptedServer(ends)) }

  func outbox(
    _ settings: Outbox.Settings = .init(), policy: Policy = .standard, budgets: RetryBudgets = RetryBudgets(),
    credentials: (any CredentialSource)? = nil, in database: (any DatabaseWriter)? = nil
  ) async throws -> Outbox {
    var settings = settings
    settings.leaseClock = LeaseClock(elapsed: { [clock] in clock.now.offset }, boot: "boot")
    return try await Outbox(
      database: database ?? self.database, origin: .example, transport: server, policy: policy,
      credentials: credentials, budgets: budgets, settings: settings, environment: .test(clock, random: nil))
  }

  var notes: [String] {
    get throws { try database.read { db in try String.fetchAll(db, sql: "SELECT text FROM note") } }
  }
}

private let order = IntentRequest(method: .post, path: "/v1/orders", body: .bytes([1]))

struct OutboxTests {
  @Test func `an intent is sent, and its outcome is there after a restart`() async throws {
    let rig = try Rig([.success(.executed(201, "7"))])
    let outbox = try await rig.outbox()
    let intent = try await outbox.enqueue(order)
    let running = Task { try await outbox.run() }
    #expect(try await outbox.outcome(of: intent) == .completed(.executed(201, "7"), wasReplayed: false))
    running.cancel()
    let restarted = try await rig.outbox()
    #expect(try await restarted.outcome(of: intent) == .completed(.executed(201, "7"), wasReplayed: false))
    #expect(rig.server.keys == [intent.key.rawValue])
  }

  @Test func `an intent that is enqueued while the queue runs is sent at once`() async throws {
    let rig = try Rig([.success(.executed(201))])
    let outbox = try await rig.outbox()
    let running = Task { try await outbox.run() }
    for _ in 0..<20 {
      let intent = try await outbox.enqueue(order)
      #expect(try await outbox.outcome(of: intent) == .completed(.executed(201), wasReplayed: false))
    }
    running.cancel()
  }

  @Test func `a lost response is asked for again under the same key`() async throws {
    let rig = try Rig([.failure(.lost("")), .success(.replayed(201))])
    let outbox = try await rig.outbox()
    let intent = try await outbox.enqueue(order)
    #expect(await outbox.runDue() == 1)
    #expect(try await outbox.outcomeIfEnded(of: intent) == nil)
    rig.clock.advance(by: .seconds(1))
    #expect(await outbox.runDue() == 1)
    #expect(try await outbox.outcome(of: intent) == .completed(.replayed(201), wasReplayed: true))
    #expect(rig.server.keys == [intent.key.rawValue, intent.key.rawValue])
  }

  @Test func `a run that is cut off in a delivery is followed by one that repeats it under the same key`()
    async throws
  {
    let (sent, sending) = AsyncStream.makeStream(of: Void.self)
    let isCut = Atomic(false)
    let rig = try Rig(
      ScriptedServer { (_, _) async throws(TransportError) in
        if isCut.load(ordering: .relaxed) { return .replayed(201) }
        sending.yield()
        try? await Task.sleep(for: .seconds(3600))
        throw .lost("cancelled")
      })
    let outbox = try await rig.outbox()
    let intent = try await outbox.enqueue(order)
    let running = Task { try await outbox.run() }
    var iterator = sent.makeAsyncIterator()
    await iterator.next()
    running.cancel()
    try await running.value
    isCut.store(true, ordering: .relaxed)
    rig.clock.advance(by: .seconds(60))
    await outbox.runDue()
    #expect(try await outbox.outcome(of: intent) == .completed(.replayed(201), wasReplayed: true))
    #expect(Set(rig.server.keys) == [intent.key.rawValue])
  }

  @Test func `a queue whose places are all taken waits until one is free`() async throws {
    let (sent, sending) = AsyncStream.makeStream(of: Void.self)
    let (release, releasing) = AsyncStream.makeStream(of: Void.self)
    let rig = try Rig(
      ScriptedServer { (_, _) in
        sending.yield()
        for await _ in release { break }
        return .executed(201)
      })
    var settings = Outbox.Settings()
    settings.maxParallel = 1
    let outbox = try await rig.outbox(settings)
    let intents = [try await outbox.enqueue(order), try await outbox.enqueue(order)]
    let running = Task { try await outbox.run() }
    var iterator = sent.makeAsyncIterator()
    await iterator.next()
    for _ in 0..<100 { _ = try await outbox.statistics() }
    #expect(rig.clock.sleepCount < 20)
    #expect(rig.server.requests.count == 1)
    for _ in intents { releasing.yield() }
    for intent in intents { _ = try await outbox.outcome(of: intent) }
    running.cancel()
  }

  @Test func `fifty taps at once are one intent`() async throws {
    let rig = try Rig([.success(.executed(201))])
    let outbox = try await rig.outbox()
    let intents = try await withThrowingTaskGroup(of: QueuedIntent.self) { group in
      for _ in 0..<50 { group.addTask { try await outbox.enqueue(order, once: "submit-cart-17") } }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(intents.count == 1)
    await outbox.runDue()
    #expect(rig.server.requests.count == 1)
  }

  @Test func `two processes on one file never send one intent at once, and each intent once`() async throws {
    let inFlight = Mutex<Set<String>>([])
    let rig = try Rig(
      ScriptedServer { (request, _) in
        let key = request.headerFields[.idempotencyKey] ?? ""
        let isAlone = inFlight.withLock { $0.insert(key).inserted }
        #expect(isAlone)
        for _ in 0..<10 { await Task.yield() }
        inFlight.withLock { _ = $0.remove(key) }
        return .executed(201)
      })
    let folder = FileManager.default.temporaryDirectory.appending(path: "semel-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    var configuration = Configuration()
    configuration.busyMode = .timeout(30)
    let path = folder.appending(path: "shared.sqlite").path()
    let app = try await rig.outbox(in: try DatabasePool(path: path, configuration: configuration))
    let other = try await rig.outbox(in: try DatabasePool(path: path, configuration: configuration))
    var intents: [QueuedIntent] = []
    for number in 0..<100 { intents.append(try await app.enqueue(order, group: number % 3 == 0 ? "g" : nil)) }
    await withDiscardingTaskGroup { group in
      for outbox in [app, other] {
        group.addTask {
          while (try? await outbox.statistics().ready + outbox.statistics().blocked) != 0 {
            await outbox.runDue()
          }
        }
      }
    }
    for intent in intents {
      #expect(try await other.outcome(of: intent) == .completed(.executed(201), wasReplayed: false))
    }
    #expect(rig.server.keys.sorted() == intents.map(\.key.rawValue).sorted())
  }

  @Test func `an intent that was never sent is cancelled, and one that may have run is not`() async throws {
    let rig = try Rig([.failure(.lost("")), .success(Response(200, [:], #"{"state":"absent"}"#))])
    let outbox = try await rig.outbox()
    let sent = try await outbox.enqueue(order)
    await outbox.runDue()
    let unsent = try await outbox.enqueue(order)
    #expect(try await outbox.cancel(unsent) == .cancelled)
    #expect(try await outbox.outcome(of: unsent) == .cancelled(.requested))
    #expect(try await outbox.cancel(sent) == .tooLate)
    #expect(try await outbox.cancel(unsent) == .tooLate)
    #expect(try await outbox.outcomeIfEnded(of: sent) == nil)
  }

  @Test func `an intent that was sent is cancelled if the server reports that nothing was executed`()
    async throws
  {
    let rig = try Rig([
      .failure(.lost("")), .success(Response(200, [:], #"{"state":"released","attempt":1}"#)),
    ])
    let outbox = try await rig.outbox()
    let intent = try await outbox.enqueue(order)
    await outbox.runDue()
    #expect(try await outbox.cancel(intent) == .cancelled)
    #expect(try await outbox.outcome(of: intent) == .cancelled(.requested))
  }

  @Test func `an old intent is asked about before it is sent again`() async throws {
    let rig = try Rig(
      ScriptedServer { (request, _) async throws(TransportError) in
        guard request.method == .get else { throw .lost("") }
        let isReplay = request.path?.contains("response=true") == true
        return isReplay ? .replayed(201, "7") : Response(200, [:], #"{"state":"completed","status":201}"#)
      })
    let outbox = try await rig.outbox()
    let intent = try await outbox.enqueue(order)
    await outbox.runDue()
    rig.clock.advance(by: .seconds(300))
    await outbox.runDue()
    #expect(try await outbox.outcome(of: intent) == .completed(.replayed(201, "7"), wasReplayed: true))
    #expect(rig.server.requests.count { $0.method == .post } == 1)
  }

  @Test func `an object that came by another way ends its intent without a delivery`() async throws {
    let rig = try Rig([.success(.executed(201))])
    let outbox = try await rig.outbox()
    let intent = try await outbox.enqueue(order)
    #expect(try await outbox.received(objectOf: intent.key, Response(200, [:], "7")))
    #expect(try await !outbox.received(objectOf: intent.key, Response(200)))
    #expect(await outbox.runDue() == 0)
    #expect(try await outbox.outcome(of: intent) == .completed(Response(200, [:], "7"), wasReplayed: true))
    #expect(rig.server.requests.isEmpty)
  }

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

  @Test func `changes tell an intent's way, in its order`() async throws {
    let rig = try Rig([.failure(.notSent("")), .success(.executed(201))])
    let outbox = try await rig.outbox()
    var changes = outbox.changes().makeAsyncIterator()
    let intent = try await outbox.enqueue(order)
    #expect(await changes.next() == .enqueued(intent))
    await outbox.runDue()
    #expect(await changes.next() == .sending(intent))
    let third = await changes.next()
    if case .postponed(intent, _) = third {
    } else {
      Issue.record("It was not postponed: \(String(describing: third))")
    }
    rig.clock.advance(by: .seconds(1))
    await outbox.runDue()
    #expect(await changes.next() == .sending(intent))
    #expect(await changes.next() == .ended(intent, .completed(.executed(201), wasReplayed: false)))
  }

  @Test func `an intent that is not in the queue is not found`() async throws {
    let outbox = try await Rig([.success(.executed(201))]).outbox()
    let key = try #require(IntentKey("gone"))
    await #expect(throws: OutboxError.notFound) {
      try await outbox.outcome(of: QueuedIntent(id: 99, key: key))
    }
  }
}

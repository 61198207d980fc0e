import ClientTestSupport
import Foundation
import GRDB
import HTTPTypes
import SemelClient
@testable import SemelOutbox
import Synchronization
import Testing

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

  @Test func `a cancellation that comes too late keeps the pause that the server asked for`() async throws {
    let busy = Response(500, ["Retry-After": "600"])
    let rig = try Rig([.success(busy), .success(Response(200, [:], #"{"state":"absent"}"#))])
    let outbox = try await rig.outbox()
    let intent = try await outbox.enqueue(order)
    await outbox.runDue()
    #expect(try await outbox.cancel(intent) == .tooLate)
    rig.clock.advance(by: .seconds(599))
    #expect(await outbox.runDue() == 0)
    rig.clock.advance(by: .seconds(2))
    #expect(await outbox.runDue() == 1)
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

  @Test func `who waits for an end reads the queue once in each interval`() async throws {
    let rig = try Rig([.success(.executed(201))])
    let outbox = try await rig.outbox()
    let intent = try await outbox.enqueue(order)
    let waiter = Task { try await outbox.outcome(of: intent) }
    for interval in 1...3 {
      while rig.clock.sleepCount < interval { await Task.yield() }
      for _ in 0..<50 { _ = try await outbox.statistics() }
      #expect(rig.clock.sleepCount == interval)
      rig.clock.advance(by: .seconds(1))
    }
    await outbox.runDue()
    #expect(try await waiter.value == .completed(.executed(201), wasReplayed: false))
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

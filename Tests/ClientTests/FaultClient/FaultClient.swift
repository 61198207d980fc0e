import Foundation
import GRDB
import HTTPTypes
import SemelClient
import SemelOutbox

/// `fault-client PLAN` enqueues the orders of a plan, sends them until each has its end, and dies in between. Started
/// again, it goes on. It ends by itself when every order has its end.
@main
struct FaultClient {
  let plan: Plan
  let database: DatabasePool
  let outbox: Outbox

  /// An error ends the process with a sentence: a crash is to be the library's own.
  static func main() async {
    do {
      let plan = try JSONDecoder().decode(
        Plan.self, from: Data(contentsOf: URL(filePath: CommandLine.arguments[1])))
      try await FaultClient(plan).run()
    } catch {
      FileHandle.standardError.write(Data("The client failed: \(error)\n".utf8))
      exit(1)
    }
  }

  init(_ plan: Plan) async throws {
    self.plan = plan
    var configuration = Configuration()
    configuration.busyMode = .timeout(60)
    configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA synchronous = FULL") }
    database = try Self.opened(plan.file, configuration)
    try await database.write { db in
      try db.execute(
        sql: "CREATE TABLE IF NOT EXISTS purchase (number INTEGER PRIMARY KEY, state TEXT, intent INTEGER)")
    }
    var policy = Policy.standard
    policy.attemptTimeout = .seconds(5)
    policy.queue.backoff.max = .seconds(2)
    var settings = Outbox.Settings()
    settings.leaseDuration = .seconds(2)
    settings.reconcileAfter = .seconds(1)
    settings.maxParallel = 8
    settings.onEnd = { [plan] db, intent, outcome in
      try db.execute(
        sql: "UPDATE purchase SET state = 'ended' WHERE intent = ?", arguments: [intent.id])
      plan.mayDie(at: .committing)
    }
    var environment = ClientEnvironment.system
    environment.now = { [plan] in plan.now() }
    guard let origin = Origin(plan.origin) else { fatalError("\(plan.origin) is no origin.") }
    outbox = try await Outbox(
      database: database, origin: origin, transport: DeadlyTransport(plan: plan, database: database),
      policy: policy, credentials: Tokens(plan: plan), budgets: RetryBudgets(.unlimited), settings: settings,
      environment: environment)
  }

  /// Opens the database, which the other process may be making at the same moment: SQLite then refuses to begin its log
  /// of writes at once, whatever the time-out.
  private static func opened(_ path: String, _ configuration: Configuration) throws -> DatabasePool {
    while true {
      do {
        return try DatabasePool(path: path, configuration: configuration)
      } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
        continue
      }
    }
  }

  func run() async throws {
    let changes = outbox.changes()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await outbox.run() }
      group.addTask { for await case .ended in changes { plan.mayDie(at: .ended) } }
      if plan.fillsDisk { group.addTask { await fillDisk(database) } }
      try await enqueueAll()
      while try await openCount() > 0 { try await Task.sleep(for: .milliseconds(100)) }
      group.cancelAll()
    }
  }

  private func openCount() async throws -> Int {
    try await database.read { db in
      try Int.fetchOne(db, sql: "SELECT count(*) FROM purchase WHERE state <> 'ended'") ?? 0
    }
  }

  private func enqueueAll() async throws {
    let known = try await database.read { db in try Set(Int.fetchAll(db, sql: "SELECT number FROM purchase"))
    }
    for number in plan.first..<(plan.first + plan.count) {
      // A tap on something that is there already, and two taps at once, are to be harmless.
      if known.contains(number), plan.bug != .guardInMemory, Int.random(in: 0..<50) > 0 { continue }
      let taps = plan.bug != .guardInMemory && Int.random(in: 0..<10) == 0 ? 2 : 1
      await withDiscardingTaskGroup { group in
        for _ in 0..<taps { group.addTask { await buy(number) } }
      }
      plan.mayDie(at: .enqueued)
    }
  }

  /// Buys once, as soon as the disk has room.
  private func buy(_ number: Int) async {
    while true {
      do { return try await tap(number) } catch { try? await Task.sleep(for: .milliseconds(50)) }
    }
  }

  private func tap(_ number: Int) async throws {
    let request = IntentRequest(
      method: .post, path: "/hold", fields: [.contentType: "application/json", .device: plan.device],
      body: .bytes([UInt8](#"{"number":\#(number),"group":"\#(plan.device)-\#(number % plan.groups)"}"#.utf8))
    )
    let group = plan.bug == .orderByTime ? nil : "group-\(number % plan.groups)"
    let once = plan.bug == .guardInMemory ? nil : "\(number)"
    if plan.bug == .enqueueOutsideTransaction {
      try await database.write { db in
        try db.execute(
          sql: "INSERT OR IGNORE INTO purchase (number, state) VALUES (?, 'open')", arguments: [number])
      }
      plan.mayDie(at: .enqueued)
    }
    try await database.write { [outbox] db in
      let intent = try outbox.enqueue(request, group: group, once: once, in: db)
      try db.execute(
        sql: """
          INSERT INTO purchase (number, state, intent) VALUES (?, 'open', ?)
          ON CONFLICT DO UPDATE SET intent = coalesce(intent, excluded.intent)
          """, arguments: [number, intent.id])
    }
  }
}

extension HTTPField.Name {
  /// The field that names the caller.
  static let device: Self = {
    guard let name = Self("X-Device-ID") else { fatalError("The name is valid.") }
    return name
  }()
}

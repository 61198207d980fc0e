import ClientTestSupport
import Foundation
import GRDB
import HTTPTypes
@testable import SemelClient
@testable import SemelOutbox
import Synchronization
import Testing

/// The databases on which the queue's tests run: each kind that GRDB has, and one with sealed bodies.
enum QueueKind: String, CaseIterable, Sendable {
  case memory, file, pool, sealed
}

/// A queue in a database of its own, with a time of its own.
final class Queue: Sendable {
  let database: any DatabaseWriter
  let clock = TestClock()
  let boot = Mutex("boot-1")
  let folder: URL
  private let seal: (any BodySeal)?
  private let ends = Mutex<[(QueuedIntent, QueuedOutcome)]>([])

  init(_ kind: QueueKind = .memory) throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "semel-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let path = folder.appending(path: "queue.sqlite").path()
    database =
      switch kind {
      case .memory: try DatabaseQueue()
      case .file, .sealed: try DatabaseQueue(path: path)
      case .pool: try DatabasePool(path: path)
      }
    seal = kind == .sealed ? XorSeal() : nil
    try database.write { db in try QueueSchema.migrate(db) }
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  /// The queue as a process sees it; each has a name of its own.
  func store(
    _ owner: String = "process-1", policy: Policy = .standard, limits: QueueLimits = QueueLimits(),
    isUnsealed: Bool = false, didEnd: (@Sendable (Database, [QueueStore.End]) throws -> Void)? = nil
  ) -> QueueStore {
    QueueStore(
      policy: policy, limits: limits, seal: isUnsealed ? nil : seal, environment: environment,
      leaseClock: LeaseClock(elapsed: { [clock] in clock.now.offset }, boot: boot.withLock { $0 }),
      owner: owner, leaseDuration: .seconds(30)
    ) { [self] db, ended in
      try didEnd?(db, ended)
      ends.withLock { $0 += ended.compactMap { end in end.intent.map { ($0, end.outcome) } } }
    }
  }

  /// The test's time and the system's randomness: keys and leases have to differ.
  var environment: ClientEnvironment { .test(clock, random: nil) }

  var ended: [Int64: QueuedOutcome] {
    ends.withLock { Dictionary($0.map { ($0.0.id, $0.1) }, uniquingKeysWith: { first, _ in first }) }
  }
  var endCount: Int { ends.withLock { $0.count } }

  @discardableResult
  func enqueue(
    _ path: String = "/v1/orders", method: HTTPRequest.Method = .post, group: String? = nil,
    once: String? = nil,
    coalesces: Bool = false, rule: GroupRule = .proceed, values: [ResponseValue] = [], body: String = "{}"
  ) throws -> QueuedIntent {
    let request = IntentRequest(method: method, path: path, body: .bytes([UInt8](body.utf8)))
    return try database.write { [store = store()] db in
      try store.enqueue(
        request, .init(group: group, rule: rule, once: once, coalesces: coalesces, values: values), in: db)
    }
  }

  func lease(_ limit: Int = 100, as owner: String = "process-1") throws -> [LeasedIntent] {
    try database.write { [store = store(owner)] db in try store.lease(limit: limit, in: db).leased }
  }

  @discardableResult
  func end(_ leased: LeasedIntent, _ outcome: QueuedOutcome = .completed(Response(201), wasReplayed: false))
    throws -> Bool
  {
    try database.write { [store = store()] db in try store.end(leased, outcome, in: db) }
  }

  func outcome(_ intent: QueuedIntent) throws -> QueuedOutcome? {
    try database.read { [store = store()] db in
      try store.row("id = ?", [intent.id], in: db).flatMap { try store.outcome($0) }
    }
  }

  func statistics() throws -> QueueStatistics {
    try database.read { [store = store()] db in try store.statistics(in: db) }
  }
}

/// A seal that a test can look through. It ties a body to its key.
struct XorSeal: BodySeal {
  struct WrongKey: Error {}

  func seal(_ body: [UInt8], key: IntentKey) -> [UInt8] {
    [UInt8](key.rawValue.utf8) + body.map { $0 ^ 0xA5 }
  }

  func open(_ sealed: [UInt8], key: IntentKey) throws -> [UInt8] {
    guard sealed.starts(with: key.rawValue.utf8) else { throw WrongKey() }
    return sealed.dropFirst(key.rawValue.utf8.count).map { $0 ^ 0xA5 }
  }
}

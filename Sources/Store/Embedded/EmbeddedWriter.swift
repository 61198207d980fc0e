import Dispatch
import GRDB
import Idempotency
import Logging
import Synchronization

/// Runs everybody's commands: all that wait as one group, in one transaction, with one wait for the disk.
///
/// While the disk works, the next group gathers by itself: the busier the store, the larger the groups.
final class EmbeddedWriter: Sendable {
  /// How many entries the sweeper removes at once: a few milliseconds, for which callers wait.
  private static let sweepLimit = 256
  /// The sweeper's pace while there is something to remove, and while there is not.
  private static let busySweep = Milliseconds(20)
  private static let idleSweep = Milliseconds(1000)

  let queue = RequestQueue()
  let waiters = WatchRegistry()
  let commitCount = Atomic<Int>(0)
  let sweptCount = Atomic<Int>(0)
  private let clock: StoreClock
  private let logger: Logger

  init(clock: StoreClock, logger: Logger) {
    self.clock = clock
    self.logger = logger
  }

  /// Works until the queue is closed. On the database's own thread.
  func run(on database: Database) {
    do {
      try work(on: database)
    } catch {
      logger.critical("store: the writer cannot work", metadata: ["error": "\(error)"])
      queue.close()
      while let group = queue.take(reusing: [], until: .now()) {
        for request in group { request.fail(.unavailable("\(error)")) }
      }
    }
  }

  private func work(on database: Database) throws {
    let transaction = try Transaction(database)
    let table = try RecordTable(database)
    var group: [any EmbeddedRequest] = []
    var nextSweep = DispatchTime.now() + .milliseconds(Int(Self.idleSweep.count))
    while let taken = queue.take(reusing: group, until: nextSweep) {
      group = taken
      run(group, on: table, transaction)
      group.removeAll(keepingCapacity: true)
      guard DispatchTime.now() >= nextSweep else { continue }
      let pace = sweep(table, transaction) ? Self.busySweep : Self.idleSweep
      nextSweep = .now() + .milliseconds(Int(pace.count))
    }
  }

  private func run(_ group: [any EmbeddedRequest], on table: RecordTable, _ transaction: Transaction) {
    guard !group.isEmpty else { return }
    do throws(TransactionError) {
      let ended = try commit(group, on: table, transaction)
      for request in group { request.deliver() }
      waiters.wake(ended)
    } catch {
      if group.count > 1, error.isOfOneCommand {
        // One damaged page must not fail those who came along: each is run by itself.
        for request in group { run([request], on: table, transaction) }
        return
      }
      logger.error("store: a group of commands failed", metadata: ["error": "\(error)"])
      for request in group { request.fail(error.storeError) }
    }
  }

  /// Runs the group in one transaction; which records it ended.
  private func commit(
    _ group: [any EmbeddedRequest], on table: RecordTable, _ transaction: Transaction
  ) throws(TransactionError) -> [RecordID] {
    let now = clock.now()
    var ended: [RecordID] = []
    try transaction.run { () throws(SQLError) in
      var hasWritten = false
      for request in group {
        let effect = try request.run(on: table, now: now)
        hasWritten = hasWritten || effect.hasWritten
        if let id = effect.ended { ended.append(id) }
      }
      guard hasWritten else { return }
      try table.touch(now)
      commitCount.add(1, ordering: .relaxed)
    }
    return ended
  }

  /// Removes what is over; whether there may be more of it.
  private func sweep(_ table: RecordTable, _ transaction: Transaction) -> Bool {
    var count = 0
    do throws(TransactionError) {
      try transaction.run { () throws(SQLError) in
        count = try table.sweep(now: clock.now(), limit: Self.sweepLimit)
      }
    } catch {
      logger.error("store: sweeping failed", metadata: ["error": "\(error)"])
      return false
    }
    sweptCount.add(count, ordering: .relaxed)
    return count == Self.sweepLimit
  }
}

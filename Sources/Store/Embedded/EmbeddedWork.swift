import Dispatch
import GRDB
import GRDBSQLite
import Idempotency
import Logging
import Synchronization
import Wire

/// The writer's work on the open database: groups of commands, and housekeeping. Confined to the database's thread.
final class EmbeddedWork {
  let writer: EmbeddedWriter
  let database: Database
  let table: RecordTable
  let transaction: Transaction
  let presence: FilePresence
  let lock: FileLock
  let statements: HousekeepingStatements
  let clock: StoreClock
  /// The reason for which no command is run at the moment.
  var unavailability: String?
  /// The time of the last change that was not written; `nil` since one was written.
  var hinderedAt: DispatchTime?
  var housekeeping = Housekeeping()
  /// The maximum size of the responses that one transaction reads: many claims of large records must not fill the
  /// memory before their callers have counted what they hold.
  private static let maxBytesRead = 8 << 20

  var logger: Logger { writer.logger }
  var busyMilliseconds: Int32 { Int32(clamping: writer.timeout.count) }

  init(
    _ database: Database, _ presence: FilePresence, _ lock: FileLock, _ clock: StoreClock,
    of writer: EmbeddedWriter
  ) throws {
    self.writer = writer
    self.database = database
    self.presence = presence
    self.lock = lock
    self.clock = clock
    transaction = try Transaction(database)
    table = try RecordTable(database)
    statements = try HousekeepingStatements(database)
    // An operator with the sqlite3 shell may lock the file for a moment. No command waits longer than its time-out.
    sqlite3_busy_timeout(database.sqliteConnection, busyMilliseconds)
  }

  func run() {
    var group: [any EmbeddedRequest] = []
    var nextRound = DispatchTime.now()
    while let taken = writer.queue.take(reusing: group, until: nextRound) {
      group = taken
      run(group)
      writer.queue.finish()
      group.removeAll(keepingCapacity: true)
      guard DispatchTime.now() >= nextRound else { continue }
      nextRound = .now() + .milliseconds(Int(runHousekeeping().count))
    }
    noteLatest()
  }

  private func run(_ group: [any EmbeddedRequest]) {
    var rest = group[...]
    while !rest.isEmpty { rest.removeFirst(runPart(of: rest)) }
  }

  private func runPart(of group: ArraySlice<any EmbeddedRequest>) -> Int {
    // Two system calls a group: a file that is gone must be noticed before the next claim, not by it.
    watchFile()
    if let unavailability {
      for request in group { request.fail(.refused(unavailability)) }
      return group.count
    }
    do throws(TransactionError) {
      let effect = try commit(group)
      invariant(effect.count > 0, "a transaction has run none of its commands")
      writer.served()
      let part = group.prefix(effect.count)
      // A commit into a file that is gone is lost with this process.
      if effect.hasWritten { watchFile() }
      if let unavailability {
        for request in part { request.fail(.fateUnknown(unavailability)) }
        return part.count
      }
      if effect.hasWritten { writesAgain() }
      for request in part { request.deliver() }
      writer.waiters.wake(effect.ended)
      return part.count
    } catch {
      failed(group, error)
      return group.count
    }
  }

  /// Fails the commands of a group, or runs each by itself: one damaged page must not fail the others.
  private func failed(_ group: ArraySlice<any EmbeddedRequest>, _ error: TransactionError) {
    noteDamage(error)
    if group.count > 1, error.isOfOneCommand {
      for request in group { _ = runPart(of: [request]) }
      return
    }
    // A full disk is an answer, and often the doing of those who are answered.
    if error.cause.isFull { writer.served() }
    logger.debug("store: a group of commands failed", metadata: ["error": "\(error)"])
    noteHindrance(error)
    for request in group { request.fail(error.storeError) }
  }

  /// Runs the first commands of the group in one transaction.
  private func commit(
    _ group: ArraySlice<any EmbeddedRequest>
  ) throws(TransactionError) -> (count: Int, ended: [RecordID], hasWritten: Bool) {
    var count = 0
    var ended: [RecordID] = []
    var hasWritten = false
    defer { table.forgetResponses() }
    try change { () throws(SQLError) in
      // The clock is read only here, when there is no more lock to wait for.
      let now = clock.now()
      for request in group {
        guard table.bytesRead < Self.maxBytesRead else { break }
        count += 1
        guard request.begin() else { continue }
        let effect = try request.run(on: table, now: now)
        invariant(effect.hasWritten || effect.ended == nil, "a record has ended without a change")
        hasWritten = hasWritten || effect.hasWritten
        if let id = effect.ended { ended.append(id) }
      }
      guard hasWritten else { return }
      try table.touch(clock)
    }
    if hasWritten {
      writer.figures.withLock { $0.commits += 1 }
      housekeeping.touchedAt = .now()
    }
    return (count, ended, hasWritten)
  }

  func change(_ body: () throws(SQLError) -> Void) throws(TransactionError) {
    do throws(TransactionError) {
      try transaction.run(body)
      table.openRows.commit()
    } catch {
      table.openRows.rollBack()
      throw error
    }
    writer.figures.withLock { $0.hasOpenIndex = table.openRows.isWhole }
  }

  func watchFile() {
    let fault = presence.fault
    guard fault != unavailability else { return }
    unavailability = fault
    writer.figures.withLock { $0.isAvailable = fault == nil }
    if let fault {
      writer.monitor.refuses(fault)
      logger.critical(
        "store: the database cannot be used, and no protected request runs", metadata: ["error": "\(fault)"])
    } else {
      writer.monitor.serves()
      logger.notice("store: the database is back in its place")
    }
  }
}

extension EmbeddedWork {
  /// Empties a log that has grown far beyond its limit. Logs a warning if that fails.
  func watchLog() {
    var length = FilePresence.length(of: presence.path + "-wal")
    defer { writer.figures.withLock { $0.logBytes = length } }
    guard length >= writer.logBound else { return }
    let outcome = LogCheckpoint.run(database, busyMilliseconds: busyMilliseconds)
    length = FilePresence.length(of: presence.path + "-wal")
    guard outcome != .emptied, housekeeping.mayWarn(.log) else { return }
    let reason = outcome == .heldByReader ? "another process reads the database and holds it" : "\(outcome)"
    logger.warning(
      "store: the database's log grows and cannot be emptied; end the other processes that read the file",
      metadata: ["bytes": "\(length)", "reason": "\(reason)"])
  }

  /// Reports a store that is there and takes no changes, until one is written again.
  func noteHindrance(_ error: TransactionError) {
    guard error.cause.isOfDevice, unavailability == nil else { return }
    hinderedAt = .now()
    writer.monitor.hinders("it takes no changes: \(error.cause.text)")
  }

  func writesAgain() {
    guard hinderedAt != nil else { return }
    hinderedAt = nil
    writer.monitor.serves()
    logger.notice("store: changes are written again")
  }

  /// Concludes from a small write that changes are written again, if there is room for a record, too, and no change has
  /// failed for a while.
  func mayWriteAgain() {
    guard let hinderedAt, DispatchTime.now() >= hinderedAt + Housekeeping.recovery,
      let free = FileSpace.free(at: presence.path), free >= FileSpace.minFree
    else { return }
    writesAgain()
  }

  /// Reports that a page of the database cannot be read. What needs the page is refused, and the rest goes on.
  func noteDamage(_ error: TransactionError) {
    guard error.cause.isCorrupt, !error.isOfCommit, housekeeping.mayWarn(.damage) else { return }
    logger.error(
      """
      store: a page of the database is damaged, and changes that need it are refused; check the disk, stop Semel, and \
      mend the file (deploy/manual/store.md, a damaged file)
      """, metadata: ["error": "\(error.cause.text)", "file": "\(presence.path)"])
  }

  func watchClock() {
    guard let lead = clock.lead(), housekeeping.mayWarn(.clock) else { return }
    logger.warning(
      "store: the wall clock was set while Semel runs; the store's time goes on, and follows it at the next start",
      metadata: ["by_ms": "\(lead.count)"])
  }
}

/// The embedded store's numbers for the metrics page.
public struct EmbeddedFigures: Equatable, Sendable {
  /// The number of groups that were committed.
  public internal(set) var commits = 0
  /// The number of entries and responses that the sweeper has removed.
  public internal(set) var swept = 0
  /// The number of sweep steps that failed.
  public internal(set) var sweepFailures = 0
  /// The length of the database file, in bytes.
  public internal(set) var databaseBytes = 0
  /// The length of SQLite's log, in bytes.
  public internal(set) var logBytes = 0
  /// The free space within the database, in bytes.
  public internal(set) var freeBytes = 0
  /// The number of starts of this process that have found a loss (`FileLoss`).
  public internal(set) var losses = 0
  /// Whether the database is still where it was opened.
  public internal(set) var isAvailable = true
  /// Whether all open records are known, so that nobody has to walk for them.
  public internal(set) var hasOpenIndex = false
}

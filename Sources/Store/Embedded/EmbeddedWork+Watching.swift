import Dispatch
import GRDB
import Idempotency
import Logging
import Synchronization

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

import Dispatch
import GRDB
import GRDBSQLite
import Idempotency
import Logging
import NIOCore
import Platform
import Synchronization

/// The schedule of the housekeeping.
struct Housekeeping {
  /// The pause between two rounds while sweeping or shrinking has more to do, and otherwise.
  static let busyPause = Milliseconds(20)
  static let idlePause = Milliseconds(1000)
  /// The maximum duration of one step, for which callers wait, in nanoseconds.
  static let step: UInt64 = 4_000_000
  static let sweepLimit = 256
  static let findLimit = 256
  /// The pause after which an idle store writes its time, in nanoseconds, so that a start knows how long it was closed.
  static let touchPause: UInt64 = 60_000_000_000
  /// The time after a failed change from which a small one that succeeds counts.
  static let recovery = DispatchTimeInterval.seconds(5)

  var sweeping = RetryPause()
  var finding = RetryPause()
  var shrinking = RetryPause()
  var touchedAt = DispatchTime.now()
  var nextLook = DispatchTime.now()
  private var warnings = LogPace<Warning>(interval: .minutes(10))

  enum Warning { case log, clock, damage }

  /// Whether a warning about a matter is due.
  mutating func mayWarn(_ matter: Warning) -> Bool { warnings.count(matter, at: .now()) != nil }
}

final class HousekeepingStatements {
  let shrink, pageCount, freePageCount, pageSize, latest: SQLStatement

  init(_ database: Database) throws {
    shrink = try SQLStatement(database, "PRAGMA incremental_vacuum")
    pageCount = try SQLStatement(database, "PRAGMA page_count")
    freePageCount = try SQLStatement(database, "PRAGMA freelist_count")
    pageSize = try SQLStatement(database, "PRAGMA page_size")
    latest = try SQLStatement(database, "SELECT latest FROM clock")
  }

  func number(_ statement: SQLStatement) throws(SQLError) -> Int {
    defer { statement.reset() }
    return try statement.step() ? Int(statement.integer(0)) : 0
  }
}

extension EmbeddedWork {
  /// Does one step of what is due. Returns the pause until the next step.
  func runHousekeeping() -> Milliseconds {
    if DispatchTime.now() >= housekeeping.nextLook {
      housekeeping.nextLook = .now() + .milliseconds(Int(Housekeeping.idlePause.count))
      watchFile()
      guard unavailability == nil else { return Housekeeping.idlePause }
      noteLatest()
      watchClock()
      watchLog()
      if DispatchTime.now().uptimeNanoseconds - housekeeping.touchedAt.uptimeNanoseconds
        >= Housekeeping.touchPause || hinderedAt != nil
      {
        // While no command comes, only this write shows that changes are possible again.
        keepClock()
      }
    }
    guard unavailability == nil else { return Housekeeping.idlePause }
    let hasFound = findOpen()
    let hasSwept = sweep()
    let hasShrunk = shrink()
    return hasFound || hasSwept || hasShrunk ? Housekeeping.busyPause : Housekeeping.idlePause
  }

  func noteLatest() {
    guard unavailability == nil, let latest = try? statements.number(statements.latest) else { return }
    lock.keep(latest: Int64(latest))
  }

  func keepClock() {
    housekeeping.touchedAt = .now()
    do throws(TransactionError) {
      try transaction.run { () throws(SQLError) in try table.touch(clock) }
      mayWriteAgain()
    } catch {
      noteHindrance(error)
      logger.debug("store: its time was not written", metadata: ["error": "\(error)"])
    }
  }

  /// Walks for open records of earlier processes. True if there is more of the file.
  private func findOpen() -> Bool {
    guard !table.openRows.isWhole, housekeeping.finding.isDue() else { return false }
    let end = DispatchTime.now().uptimeNanoseconds + Housekeeping.step
    var fits = true
    do throws(TransactionError) {
      try change { () throws(SQLError) in
        repeat {
          fits = try table.findOpen(limit: Housekeeping.findLimit)
        } while fits && !table.openRows.isWhole && DispatchTime.now().uptimeNanoseconds < end
      }
    } catch {
      guard !error.cause.isOfDevice else { return false }
      housekeeping.finding.failed()
      logger.debug("store: the walk for open records failed", metadata: ["error": "\(error)"])
      noteDamage(error)
      return false
    }
    if table.openRows.isWhole { housekeeping.finding.succeeded() }
    if !fits { housekeeping.finding.failed() }
    return fits && !table.openRows.isWhole
  }

  /// Removes entries that are over. True if more may be due.
  private func sweep() -> Bool {
    guard housekeeping.sweeping.isDue() else { return false }
    var count = 0
    let end = DispatchTime.now().uptimeNanoseconds + Housekeeping.step
    var isCut = false
    do throws(TransactionError) {
      try change { () throws(SQLError) in
        count = try table.sweep(now: clock.now(), limit: Housekeeping.sweepLimit) {
          isCut = DispatchTime.now().uptimeNanoseconds >= end
          return !isCut
        }
      }
      housekeeping.sweeping.succeeded()
    } catch {
      failedToSweep(error)
      return false
    }
    writer.figures.withLock { $0.swept += count }
    return isCut || count == Housekeeping.sweepLimit
  }

  private func failedToSweep(_ error: TransactionError) {
    writer.figures.withLock { $0.sweepFailures += 1 }
    // A locked file or a full disk makes commands fail, too, and those failures are logged.
    guard !error.cause.isOfDevice else { return }
    housekeeping.sweeping.failed()
    logger.error("store: sweeping failed; it pauses, longer each time", metadata: ["error": "\(error)"])
    noteDamage(error)
  }

  /// Returns free space to the system. True if there is more of it.
  private func shrink() -> Bool {
    guard housekeeping.shrinking.isDue() else { return false }
    do throws(TransactionError) {
      var isCut = false
      try transaction.run { () throws(SQLError) in
        let excess = try space().excessPages
        guard excess > 0 else { return }
        isCut = try shrink(by: excess)
      }
      housekeeping.shrinking.succeeded()
      return isCut
    } catch {
      guard !error.cause.isOfDevice else { return false }
      housekeeping.shrinking.failed()
      logger.warning("store: the file could not be shrunk", metadata: ["error": "\(error)"])
      return false
    }
  }

  /// Moves pages from the end of the file to free ones. True if the step ended before all were moved.
  private func shrink(by excess: Int) throws(SQLError) -> Bool {
    let end = DispatchTime.now().uptimeNanoseconds + Housekeeping.step
    defer { statements.shrink.reset() }
    var count = 0
    // Each row is one page.
    while count < excess, try statements.shrink.step() {
      count += 1
      if DispatchTime.now().uptimeNanoseconds >= end { return true }
    }
    return false
  }

  private func space() throws(SQLError) -> FileSpace {
    let space = FileSpace(
      pages: try statements.number(statements.pageCount),
      freePages: try statements.number(statements.freePageCount))
    let size = try statements.number(statements.pageSize)
    writer.figures.withLock {
      ($0.databaseBytes, $0.freeBytes) = (space.pages * size, space.freePages * size)
    }
    return space
  }
}

/// The schedule of an operation that fails: again after a second, and after twice as long each time, up to an hour.
struct RetryPause: Equatable {
  /// In nanoseconds.
  private var pauses = Backoff(first: 1_000_000_000, max: 3600 * 1_000_000_000)
  private var notBefore: UInt64 = 0

  /// Whether the operation may be tried at a time of a monotonic clock, in nanoseconds.
  func isDue(now: UInt64 = DispatchTime.now().uptimeNanoseconds) -> Bool { now >= notBefore }

  mutating func failed(now: UInt64 = DispatchTime.now().uptimeNanoseconds) {
    notBefore = now + UInt64(pauses.next())
  }

  mutating func succeeded() { self = RetryPause() }
}

import GRDB
import Idempotency

/// The reason for which the embedded store cannot be opened.
public enum EmbeddedStoreError: Error, Equatable, CustomStringConvertible {
  case noDirectory(path: String)
  /// Another process has the file open, or this process already has.
  case inUse(path: String, owner: String)
  case notADatabase(path: String)
  /// The file is another program's database.
  case foreignDatabase(path: String)
  case newerFormat(path: String, found: Int, known: Int)
  /// A database was there before, and its records must not be lost silently.
  case databaseGone(path: String)
  /// The database is older than it has been, and the records since must not be lost silently.
  case databaseBehind(path: String)
  /// The file is a copy of an earlier moment, in which keys may be missing.
  case copy(path: String, madeAt: Int64)
  /// The wall clock is more than an hour apart from the last time in the file; `lead` is negative if it is behind.
  case clockApart(path: String, lead: Milliseconds)
  case cannotOpen(path: String, reason: String)
  case cannotCopy(target: String, reason: String)

  public var description: String {
    switch self {
    case .noDirectory(let path):
      "store \(path): its directory does not exist; create it, or mend store.path"
    case .inUse(let path, let owner):
      "store \(path): in use by \(owner); one file serves one process, use store.kind: redis for several"
    case .notADatabase(let path):
      "store \(path): the file is not a database; mend store.path, or move the file away"
    case .foreignDatabase(let path):
      "store \(path): the database belongs to another program; mend store.path"
    case .newerFormat(let path, let found, let known):
      "store \(path): written by a newer version (format \(found), this one reads up to \(known)); upgrade"
    case .databaseGone(let path):
      "store \(path): the database was deleted or emptied since Semel ran last, and store.require_durable is set: "
        + "restore the file, or start once with require_durable: false to continue without all recorded outcomes"
    case .databaseBehind(let path):
      "store \(path): the database is older than when Semel ran last: its log (\(path)-wal) was removed, or an earlier copy was "
        + "put in its place, and store.require_durable is set: restore the file with its log, or start once with "
        + "require_durable: false to continue without the newest outcomes"
    case .copy(let path, let madeAt):
      "store \(path): a copy of \(CopyMark.text(madeAt)), in which newer keys are missing, and store.require_durable is set: "
        + "restore the file itself, or start once with require_durable: false to continue without them"
    case .clockApart(let path, let lead):
      Self.text(path, clockApart: lead)
    case .cannotOpen(let path, let reason):
      "store \(path): cannot be opened: \(reason)"
    case .cannotCopy(let target, let reason):
      "\(target): cannot be written: \(reason)"
    }
  }

  private static func text(_ path: String, clockApart lead: Milliseconds) -> String {
    let finding =
      lead > 0
      ? "\(lead.count / 3_600_000) h ahead of the store's last change: Semel was stopped for so long, or the clock "
        + "is wrong, and the store would forget outcomes by it"
      : "\(-lead.count / 3_600_000) h behind the store's last change: it is wrong now, or was then"
    return "store \(path): the wall clock is \(finding); set it right, or start once with "
      + "store.trust_clock: true if it is right"
  }
}

extension EmbeddedStoreError {
  /// The reason for which a file cannot be opened, from any error that this has met.
  init(_ error: any Error, opening path: String) {
    switch error {
    case let error as EmbeddedStoreError:
      self = error
    case let error as DatabaseError:
      self =
        error.resultCode == .SQLITE_NOTADB
        ? .notADatabase(path: path) : .cannotOpen(path: path, reason: error.message ?? "\(error)")
    default:
      self = .cannotOpen(path: path, reason: "\(error)")
    }
  }
}

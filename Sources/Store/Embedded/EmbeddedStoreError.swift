import GRDB

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
    case .cannotOpen(let path, let reason):
      "store \(path): cannot be opened: \(reason)"
    case .cannotCopy(let target, let reason):
      "\(target): cannot be written: \(reason)"
    }
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

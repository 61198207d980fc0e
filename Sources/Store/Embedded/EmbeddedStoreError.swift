import GRDB

/// The reason for which the embedded store cannot be opened or copied.
public enum EmbeddedStoreError: Error, Equatable, CustomStringConvertible {
  case noDirectory(path: String)
  /// Another process has the file open, or this process already has.
  case inUse(path: String, owner: String)
  case notADatabase(path: String)
  /// The file is another program's database.
  case foreignDatabase(path: String)
  case newerFormat(path: String, found: Int, known: Int)
  /// Records were lost, and must not be lost silently.
  case loss(path: String, FileLoss)
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
    case .loss(let path, let loss):
      "store \(path): \(loss.refusal(at: path))"
    case .cannotOpen(let path, let reason):
      "store \(path): cannot be opened: \(reason); start Semel again once the store can be used"
    case .cannotCopy(let target, let reason):
      "\(target): cannot be written: \(reason)"
    }
  }
}

extension EmbeddedStoreError {
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

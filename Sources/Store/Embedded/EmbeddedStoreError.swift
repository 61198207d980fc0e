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
  /// Records were lost, and must not be lost silently.
  case loss(path: String, FileLoss)
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
    case .loss(let path, let loss):
      "store \(path): \(loss.refusal(at: path))"
    case .clockApart(let path, let lead):
      Self.text(path, clockApart: lead)
    case .cannotOpen(let path, let reason):
      "store \(path): cannot be opened: \(reason); start Semel again once the store can be used"
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

import FoundationEssentials

/// The finding of a start that the database lacks records which it had. It begins the next generation of attempt
/// numbers, which fence off owners whose records are lost.
public enum FileLoss: Equatable, Sendable {
  /// The database was deleted or emptied, and is made anew.
  case gone
  /// The database is older than it has been at this path, or has met a loss that may never have been logged.
  case behind
  /// The database is a copy that has not run yet, made then, in milliseconds since 1970.
  case copy(madeAt: Int64)

  var isCopy: Bool { if case .copy = self { true } else { false } }

  /// The sentence for the log.
  func report(at path: String) -> String {
    switch self {
    case .gone:
      "the database was deleted or emptied since Semel ran last, and is made anew: all recorded outcomes are gone, and "
        + "requests that are retried now run again"
    case .behind:
      "\(Self.isBehind(path)); the newest recorded outcomes are gone, and requests that are retried with their keys run "
        + "again"
    case .copy(let madeAt):
      "the file is a copy of \(Self.text(madeAt)); keys that came after it are forgotten, and requests that are retried "
        + "with them run again"
    }
  }

  func refusal(at path: String) -> String {
    let (finding, remedy, lack) =
      switch self {
      case .gone:
        ("the database was deleted or emptied since Semel ran last", "the file", "all recorded outcomes")
      case .behind: (Self.isBehind(path), "the file with its log", "the newest outcomes")
      case .copy(let madeAt):
        ("a copy of \(Self.text(madeAt)), in which newer keys are missing", "the file itself", "them")
      }
    return "\(finding), and store.require_durable is set: restore \(remedy), or start once with "
      + "require_durable: false to continue without \(lack)"
  }

  private static func isBehind(_ path: String) -> String {
    "the database is older than when Semel ran last: it was deleted and made anew, its log (\(path)-wal) was removed, "
      + "or an earlier copy was put in its place"
  }

  private static func text(_ milliseconds: Int64) -> String {
    Date(timeIntervalSince1970: Double(milliseconds / 1000)).ISO8601Format()
  }
}

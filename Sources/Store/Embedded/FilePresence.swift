import Platform

/// Detects that the database or its log was deleted, replaced or emptied while it is open, in which case SQLite goes on
/// with what it has in memory, and the next start finds nothing.
struct FilePresence {
  let path: String
  private let database: FileStatus.Identity
  private let log: FileStatus.Identity?
  /// Whether the database had pages when it was opened.
  private let hadPages: Bool

  /// Remembers the files that are open.
  ///
  /// - Parameters:
  ///   - path: The path of the database.
  ///   - database: The identity of the locked database file, whose log must already be open.
  init(path: String, database: FileStatus.Identity) {
    self.path = path
    self.database = database
    log = FileStatus(path: path + "-wal")?.identity
    hadPages = Self.length(of: path) > 0
  }

  /// The reason for which nothing may be committed; `nil` if the files are in place. Costs two system calls.
  var fault: String? {
    guard let found = FileStatus(path: path) else { return text("\(path) was deleted or moved") }
    guard found.identity == database else { return text("\(path) was replaced by another file") }
    guard !(found.size == 0 && hadPages) else { return text("\(path) was emptied") }
    guard log == nil || FileStatus(path: path + "-wal")?.identity == log else {
      return text("\(path)-wal, the log of the database, was deleted or replaced")
    }
    return nil
  }

  /// Returns the length of a file in bytes; 0 if there is none.
  static func length(of path: String) -> Int { FileStatus(path: path).map { Int($0.size) } ?? 0 }

  private func text(_ event: String) -> String {
    event + " while Semel runs: put the same file back, or stop Semel, restore a copy and start it again; "
      + "what was recorded since is lost, and an empty file would run every request again"
  }
}

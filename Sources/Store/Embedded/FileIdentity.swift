#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The identity of the file behind a path. A file that is deleted and created again has another one.
struct FileIdentity: Equatable, Sendable {
  private let device: UInt64
  private let inode: UInt64
  /// Whether the file had no bytes when it was looked at. No part of the identity.
  let isEmpty: Bool

  static func == (left: FileIdentity, right: FileIdentity) -> Bool {
    left.device == right.device && left.inode == right.inode
  }

  /// Creates the identity of the file at a path; `nil` if there is none.
  init?(path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    self.init(status)
  }

  init?(descriptor: Int32) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return nil }
    self.init(status)
  }

  private init(_ status: stat) {
    device = UInt64(truncatingIfNeeded: status.st_dev)
    inode = UInt64(truncatingIfNeeded: status.st_ino)
    isEmpty = status.st_size == 0
  }

  /// Returns the length of a file in bytes; 0 if there is none.
  static func length(of path: String) -> Int {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : 0
  }
}

/// Detects that the database or its log was deleted, replaced or emptied while it is open, in which case SQLite goes on
/// with what it has in memory, and the next start finds nothing.
struct FilePresence {
  let path: String
  private let database: FileIdentity
  private let log: FileIdentity?
  /// Whether the database had pages when it was opened.
  private let hadPages: Bool

  /// Remembers the files that are open.
  ///
  /// - Parameters:
  ///   - path: The path of the database.
  ///   - database: The identity of the locked database file, whose log must already be open.
  init(path: String, database: FileIdentity) {
    self.path = path
    self.database = database
    log = FileIdentity(path: path + "-wal")
    hadPages = FileIdentity.length(of: path) > 0
  }

  /// The reason for which nothing may be committed; `nil` if the files are in place. Costs two system calls.
  var fault: String? {
    guard let found = FileIdentity(path: path) else { return text("\(path) was deleted or moved") }
    guard found == database else { return text("\(path) was replaced by another file") }
    guard !(found.isEmpty && hadPages) else { return text("\(path) was emptied") }
    guard log == nil || FileIdentity(path: path + "-wal") == log else {
      return text("\(path)-wal, the log of the database, was deleted or replaced")
    }
    return nil
  }

  private func text(_ event: String) -> String {
    event + " while Semel runs: put the same file back, or stop Semel, restore a copy and start it again; "
      + "what was recorded since is lost, and an empty file would run every request again"
  }
}

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The file behind a name: a deleted file that is made anew has another one.
struct FileIdentity: Equatable, Sendable {
  private let device: UInt64
  private let inode: UInt64

  /// `nil` where there is no file of that name.
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
  }

  /// The length of a file in bytes; 0 where there is none.
  static func length(of path: String) -> Int {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : 0
  }
}

/// Notices that the database or its log was deleted or replaced while it is open: SQLite goes on in files that nobody
/// finds again.
struct FilePresence {
  let path: String
  private let database: FileIdentity
  private let log: FileIdentity?

  /// - Parameters:
  ///   - database: the file that is locked. Its log must have been opened.
  init(path: String, database: FileIdentity) {
    self.path = path
    self.database = database
    log = FileIdentity(path: path + "-wal")
  }

  /// Why nothing must be committed; `nil` where all is well. Two system calls.
  var fault: String? {
    guard let found = FileIdentity(path: path) else { return text("\(path) was deleted or moved") }
    guard found == database else { return text("\(path) was replaced by another file") }
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

import Glibc
import Platform

/// Detects that the database or its side files were deleted, replaced or emptied while it is open: SQLite continues
/// with what it has in memory. Used on the database's thread, but for `close`; hence `@unchecked Sendable`.
final class FilePresence: @unchecked Sendable {
  let path: String
  private let database: FileStatus.Identity
  private let log: FileStatus.Identity?
  private let index: FileStatus.Identity?
  /// The index of the log; -1 if there is none. It stays open as long as the database: closing any descriptor of it
  /// would drop SQLite's own locks on it.
  private var indexDescriptor: Int32
  /// Whether the database had pages when it was opened.
  private let hadPages: Bool

  /// - Parameter database: The identity of the locked database file, whose log must already be open.
  init(path: String, database: FileStatus.Identity) {
    self.path = path
    self.database = database
    log = FileStatus(path: path + "-wal")?.identity
    indexDescriptor = open(path + "-shm", O_RDONLY | O_CLOEXEC)
    index = indexDescriptor < 0 ? nil : FileStatus(descriptor: indexDescriptor)?.identity
    hadPages = Self.length(of: path) > 0
  }

  deinit { close() }

  /// Ends the watch. The database must be closed, or left open for good.
  func close() {
    if indexDescriptor >= 0 { Glibc.close(indexDescriptor) }
    indexDescriptor = -1
  }

  /// The reason for which nothing may be committed; `nil` if the files are in place.
  var fault: String? {
    guard let found = FileStatus(path: path) else { return text("\(path) was deleted or moved") }
    guard found.identity == database else { return text("\(path) was replaced by another file") }
    guard !(found.size == 0 && hadPages) else { return text("\(path) was emptied") }
    guard log == nil || FileStatus(path: path + "-wal")?.identity == log else {
      return text("\(path)-wal, the log of the database, was deleted or replaced")
    }
    guard index == nil || FileStatus(path: path + "-shm")?.identity == index else {
      return text("\(path)-shm, the index of the database's log, was deleted or replaced")
    }
    guard !isLogShort else { return text("\(path)-wal, the log of the database, was emptied or shortened") }
    return nil
  }

  /// Whether the log lacks frames that its index has. Another process may have emptied it between two looks; the index
  /// then has changed, too.
  private var isLogShort: Bool {
    for _ in 0..<3 {
      guard let needed = neededLogLength, Self.length(of: path + "-wal") < needed else { return false }
      if neededLogLength == needed { return true }
    }
    return false
  }

  /// The length of a log with all frames of the index, in bytes; `nil` if it has none. The index begins with a header
  /// of native byte order (https://sqlite.org/walformat.html, 2.1): at 12 whether it is initialised, at 14
  /// the page size, at 16 the number of frames.
  private var neededLogLength: Int? {
    var header = [UInt8](repeating: 0, count: 20)
    guard indexDescriptor >= 0, pread(indexDescriptor, &header, header.count, 0) == header.count,
      header[12] == 1
    else { return nil }
    let (size, frames) = header.withUnsafeBytes {
      (Int($0.load(fromByteOffset: 14, as: UInt16.self)), Int($0.load(fromByteOffset: 16, as: UInt32.self)))
    }
    let pageSize = size == 1 ? 65_536 : size
    return frames == 0 ? nil : 32 + frames * (24 + pageSize)
  }

  static func length(of path: String) -> Int { FileStatus(path: path).map { Int($0.size) } ?? 0 }

  private func text(_ event: String) -> String {
    event + " while Semel runs: put the same file back, or stop Semel, restore a copy and start it again; "
      + "what was recorded since is lost, and an empty file would run every request again"
  }
}

import Foundation
import Glibc
import Store

extension EmbeddedStoreError {
  /// The bytes with which every database of SQLite begins.
  private static let head = Array("SQLite format 3\0".utf8)

  /// The error of a start on this machine, as far as it shows without a file being made or locked; `nil` for none.
  static func foreseen(at path: String) -> EmbeddedStoreError? {
    let file = resolved(path)
    let directory = file.lastIndex(of: "/").map { String(file[...$0]) } ?? "."
    // The directory gets the lock and the log of the database, too.
    guard access(directory, W_OK | X_OK) == 0 else {
      let number = errno
      return number == ENOENT
        ? .noDirectory(path: path) : .cannotOpen(path: path, reason: "its lock file: " + reason(number))
    }
    let found = (try? FileManager.default.attributesOfItem(atPath: file))?[.type] as? FileAttributeType
    guard let type = found else { return nil }
    guard access(file, R_OK | W_OK) == 0 else { return .cannotOpen(path: path, reason: reason(errno)) }
    guard type == .typeRegular else { return .cannotOpen(path: path, reason: "it is no regular file") }
    return isDatabase(file) ? nil : .notADatabase(path: path)
  }

  /// Whether SQLite would take a file as a database. An empty file becomes one.
  private static func isDatabase(_ file: String) -> Bool {
    guard let handle = FileHandle(forReadingAtPath: file) else { return true }
    defer { try? handle.close() }
    guard let bytes = try? handle.read(upToCount: head.count), !bytes.isEmpty else { return true }
    return Array(bytes) == head
  }

  /// The path of a file without links; the given path where there is no file.
  private static func resolved(_ path: String) -> String {
    guard let target = realpath(path, nil) else { return path }
    defer { free(target) }
    return String(cString: target)
  }

  private static func reason(_ number: Int32) -> String { String(cString: strerror(number)) }
}

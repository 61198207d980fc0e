import ArgumentParser
import Foundation
import Glibc

/// A file that a command line names.
enum InputFile {
  /// The failure to read one, with the system's reason.
  struct Unreadable: Error, CustomStringConvertible {
    let description: String

    init(_ path: String) {
      description = "\(path) cannot be read" + (InputFile.fault(of: path).map { ": \($0)" } ?? "")
    }
  }

  /// Returns the content of a file. It may be a pipe, such as /dev/stdin.
  static func content(of path: String) throws(Unreadable) -> Data {
    let content =
      FileManager.default.contents(atPath: path)
      ?? (try? FileHandle(forReadingFrom: URL(filePath: path)).readToEnd())
    guard let content else { throw Unreadable(path) }
    return content
  }

  /// Returns the content of a file, or prints why there is none and ends the command.
  static func require(_ path: String) throws -> Data {
    do throws(Unreadable) {
      return try content(of: path)
    } catch {
      StandardError.print("semel: \(error)")
      throw ExitCode.failure
    }
  }

  /// Whether the path is that of a pipe in a folder, which is read only while somebody writes to it. A pipe that this
  /// process was given is none, such as /dev/stdin.
  static func isNamedPipe(_ path: String) -> Bool {
    guard path != "/dev/stdin", !path.hasPrefix("/dev/fd/"), !path.hasPrefix("/proc/") else { return false }
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    // Terminals cannot be positioned, either.
    return lseek(descriptor, 0, SEEK_CUR) < 0 && errno == ESPIPE && isatty(descriptor) == 0
  }

  /// Returns the system's reason for which a file cannot be read; `nil` if it can.
  static func fault(of path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return String(cString: strerror(errno)) }
    defer { close(descriptor) }
    var byte: UInt8 = 0
    // A directory refuses that, too, and a pipe loses nothing by it.
    return read(descriptor, &byte, 0) < 0 ? String(cString: strerror(errno)) : nil
  }
}

import ArgumentParser
import Foundation
import Glibc
import Platform

/// A file that a command line names.
enum InputFile {
  struct Unreadable: Error, CustomStringConvertible {
    let description: String
    let isDevice: Bool

    init(_ path: String) {
      description = "\(path) cannot be read" + (InputFile.fault(of: path).map { ": \($0)" } ?? "")
      isDevice = InputFile.isDevice(path)
    }
  }

  /// Returns the content of a file. It may be a pipe, such as /dev/stdin, or a terminal.
  static func content(of path: String) throws(Unreadable) -> Data {
    guard let content = bytes(of: path) else { throw Unreadable(path) }
    return content
  }

  private static func bytes(of path: String) -> Data? {
    if FileStatus(path: path)?.kind == .regular { return FileManager.default.contents(atPath: path) }
    guard !isDevice(path) else { return nil }
    // Opened once: whoever writes to a pipe goes with the first reader. An empty pipe has a content, too.
    return try? FileHandle(forReadingFrom: URL(filePath: path)).readToEnd() ?? Data()
  }

  /// Returns the content of a file with a body, or prints why there is none and ends the command.
  static func require(_ path: String, of option: String) throws -> Data {
    do throws(Unreadable) {
      return try content(of: path)
    } catch {
      let advice = error.isDevice ? "; leave \(option) out for an empty body" : ""
      throw failed("\(error)\(advice)")
    }
  }

  /// Whether the path is that of a pipe in a folder. A pipe that this process was given, such as /dev/stdin, is none.
  static func isNamedPipe(_ path: String) -> Bool {
    guard path != "/dev/stdin", !path.hasPrefix("/dev/fd/"), !path.hasPrefix("/proc/") else { return false }
    return FileStatus(path: path)?.kind == .pipe
  }

  /// Whether the path is that of a device other than a terminal. None is read: /dev/zero has no end.
  private static func isDevice(_ path: String) -> Bool {
    guard FileStatus(path: path)?.kind == .device else { return false }
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return isatty(descriptor) == 0
  }

  /// Returns the reason for which a file cannot be read, the system's in its words; `nil` if it can.
  static func fault(of path: String) -> String? {
    if FileStatus(path: path)?.kind == .socket { return "it is a socket, not a file or a pipe" }
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return String(cString: strerror(errno)) }
    defer { close(descriptor) }
    guard !isDevice(path) else { return "it is a device, not a file or a pipe" }
    var byte: UInt8 = 0
    // A directory refuses that, too, and a pipe loses nothing by it.
    return read(descriptor, &byte, 0) < 0 ? String(cString: strerror(errno)) : nil
  }
}

import ArgumentParser
import Foundation
import Glibc
import Idempotency
import Platform
import Settings

struct ConfigurationFile {
  let path: String
  let settings: Settings
  /// The first twelve hexadecimal digits of the file's SHA-256: enough to distinguish two files.
  let digest: String

  struct Fault: Error, CustomStringConvertible {
    let lines: [String]

    var description: String { lines.joined(separator: "\n") }

    init(lines: [String]) { self.lines = lines }

    init(_ errors: SettingsErrors) { lines = errors.issues.map(\.description) }
  }

  init(reading path: String, isOffline: Bool = false) throws(Fault) {
    let (data, text) = try Self.content(of: path)
    let environment = ProcessInfo.processInfo.environment
    switch Settings.load(text: text, file: path, environment: environment, isOffline: isOffline) {
    case .success(let settings): self.settings = settings
    case .failure(let errors): throw Fault(errors)
    }
    self.path = path
    digest = String(Digest256.sha256(of: Array(data)).hexText.prefix(12))
  }

  private static func content(of path: String) throws(Fault) -> (data: Data, text: String) {
    let remedy = "give the path of a configuration file"
    guard let data = try? InputFile.content(of: path) else {
      let reason = InputFile.fault(of: path).map { " (\($0))" } ?? ""
      throw Fault(lines: ["\(path): cannot be read\(reason); \(remedy)"])
    }
    guard let text = String(validating: data, as: UTF8.self) else {
      throw Fault(lines: ["\(path): is not UTF-8 text; \(remedy)"])
    }
    return (data, text)
  }

  /// Reads a file for a command. Prints its errors and exits with code 78 if there are any.
  static func load(_ path: String, isOffline: Bool = false) throws -> ConfigurationFile {
    try orEnd(path) { () throws(Fault) in try ConfigurationFile(reading: path, isOffline: isOffline) }
  }

  /// Reads the section `store` of a file alone. Prints its errors and exits with code 78 if there are any.
  static func loadStore(_ path: String) throws -> StoreSettings {
    try orEnd(path) { () throws(Fault) in
      let text = try content(of: path).text
      switch StoreSettings.load(text: text, file: path, environment: ProcessInfo.processInfo.environment) {
      case .success(let store): return store
      case .failure(let errors): throw Fault(errors)
      }
    }
  }

  /// Prints the errors of a file, and refuses one for which a command would wait as long as nobody writes to it.
  private static func orEnd<Content>(_ path: String, _ read: () throws(Fault) -> Content) throws -> Content {
    do throws(Fault) {
      guard !InputFile.isNamedPipe(path) else {
        throw Fault(lines: ["\(path): is a named pipe; give the path of a file, or pipe it into /dev/stdin"])
      }
      return try read()
    } catch {
      StandardError.print("\(error)")
      throw ExitCode.badConfiguration
    }
  }

  /// Returns the first line of a file that contains a secret. Ends the process with exit code 78 if there is none.
  static func secret(at path: String) throws -> Secret {
    do throws(SecretFile.Fault) {
      return try SecretFile.read(path)
    } catch {
      StandardError.print("\(path): \(error); give a file with the secret in its first line")
      throw ExitCode.badConfiguration
    }
  }
}

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

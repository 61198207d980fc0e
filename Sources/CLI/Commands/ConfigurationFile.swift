import ArgumentParser
import Foundation
import Settings

/// Reads a configuration file, and ends the process with exit code 78 where it is bad.
enum ConfigurationFile {
  static func load(_ path: String) throws -> Settings {
    guard let data = FileManager.default.contents(atPath: path) else {
      StandardError.print("\(path): cannot be read; give the path of a configuration file")
      throw ExitCode.badConfiguration
    }
    guard let text = String(validating: data, as: UTF8.self) else {
      StandardError.print("\(path): is not UTF-8 text")
      throw ExitCode.badConfiguration
    }
    switch Settings.load(text: text, file: path, environment: ProcessInfo.processInfo.environment) {
    case .success(let settings):
      return settings
    case .failure(let errors):
      for issue in errors.issues { StandardError.print("\(issue)") }
      throw ExitCode.badConfiguration
    }
  }

  /// The first line of a file that holds a secret.
  static func secret(at path: String) throws -> String {
    guard let data = FileManager.default.contents(atPath: path),
      let text = String(validating: data, as: UTF8.self),
      let line = text.split(whereSeparator: \.isNewline).first
    else {
      StandardError.print("\(path): holds no secret; write it as the file's first line")
      throw ExitCode.badConfiguration
    }
    return String(line)
  }
}

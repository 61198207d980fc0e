import ArgumentParser
import Foundation
import Idempotency
import Settings

/// A configuration file that was read and checked.
struct ConfigurationFile {
  let path: String
  let settings: Settings
  /// The first twelve hexadecimal digits of the file's SHA-256, as `sha256sum` prints them: enough to distinguish two
  /// files.
  let digest: String

  /// The errors of a file, one line each.
  struct Fault: Error, CustomStringConvertible {
    let lines: [String]

    var description: String { lines.joined(separator: "\n") }
  }

  /// Reads and checks a file.
  init(reading path: String) throws(Fault) {
    guard let data = try? InputFile.content(of: path) else {
      let reason = InputFile.fault(of: path).map { " (\($0))" } ?? ""
      throw Fault(lines: ["\(path): cannot be read\(reason); give the path of a configuration file"])
    }
    guard let text = String(validating: data, as: UTF8.self) else {
      throw Fault(lines: ["\(path): is not UTF-8 text; give the path of a configuration file"])
    }
    switch Settings.load(text: text, file: path, environment: ProcessInfo.processInfo.environment) {
    case .success(let settings): self.settings = settings
    case .failure(let errors): throw Fault(lines: errors.issues.map(\.description))
    }
    self.path = path
    digest = String(Digest256.sha256(of: Array(data)).hexText.prefix(12))
  }

  /// Reads a file for a command. Prints its errors and exits with code 78 if there are any.
  static func load(_ path: String) throws -> ConfigurationFile {
    do throws(Fault) {
      return try ConfigurationFile(reading: path)
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

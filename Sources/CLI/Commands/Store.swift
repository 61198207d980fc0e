import ArgumentParser
import Foundation
import Glibc
import Settings
import Store

struct StoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "store", abstract: "Count and copy the records of the embedded store.",
    discussion: "Works on the file itself, whether Semel runs or not. A Redis has tools of its own.",
    subcommands: [Stats.self, Backup.self])

  /// The path of the embedded store that a configuration names. A relative one counts from the working directory.
  fileprivate static func path(in file: String) throws -> String {
    switch try ConfigurationFile.loadStore(file).place {
    case .embedded(let path): return URL(fileURLWithPath: path).path
    case .redis:
      throw failed("\(file): the store is a Redis; see INFO, DBSIZE and BGSAVE there")
    }
  }

  struct Stats: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "stats", abstract: "Count the records by state, with their bytes.")

    @Argument(help: "The configuration file.")
    var file: String

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
      let statistics: EmbeddedStatistics
      do {
        statistics = try EmbeddedStatistics(ofFile: try StoreCommand.path(in: file))
      } catch let error as EmbeddedStoreError {
        throw failed("\(error)")
      }
      if json { try printJSON(statistics) } else { printTable(statistics) }
    }

    private func printJSON(_ statistics: EmbeddedStatistics) throws {
      var members: [String: Int] = [
        "file_bytes": statistics.fileBytes, "log_bytes": statistics.logBytes,
        "free_bytes": statistics.freeBytes, "response_bytes": statistics.responseBytes,
      ]
      for state in statistics.states { members[state.name] = state.count }
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      print(String(decoding: try encoder.encode(members), as: UTF8.self))
    }

    private func printTable(_ statistics: EmbeddedStatistics) {
      let rows = statistics.states.map { [$0.name, "\($0.count)"] }
      print(Table.text([["STATE", "RECORDS"]] + rows))
      print(
        Table.text([
          ["responses", "\(statistics.responseBytes) bytes"],
          ["file", "\(statistics.fileBytes) bytes, of which \(statistics.freeBytes) free"],
          ["log", "\(statistics.logBytes) bytes"],
        ]))
    }
  }

  struct Backup: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "backup",
      abstract: "Copy the embedded store while Semel runs.",
      discussion: """
        The copy is consistent: the store as it is at one moment. It never replaces a file. A copy that is put back \
        does not know the keys that came after it, and their retries run again: see the manual before you restore one.
        """)

    @Argument(help: "The configuration file.")
    var file: String

    @Argument(help: "The file to write.")
    var target: String

    func validate() throws {
      if target.isEmpty { throw ValidationError("the file to write has no name") }
    }

    func run() throws {
      do {
        let bytes = try EmbeddedCopy.make(ofFile: try StoreCommand.path(in: file), to: target) { part in
          Terminal.showProgress("\(Int(part * 100)) % copied …")
        }
        Terminal.showProgress("")
        print("\(target): \(bytes) bytes")
      } catch let error as EmbeddedStoreError {
        Terminal.showProgress("")
        throw failed("\(error)")
      }
    }
  }
}

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

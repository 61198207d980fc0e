import ArgumentParser
import Foundation
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
    static let configuration = CommandConfiguration(abstract: "Count the records by state, with their bytes.")

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

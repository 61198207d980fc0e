import ArgumentParser
import Foundation

/// `semel key`: shows and changes the records of a running Semel.
struct Key: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show, list, forget and resolve the records of a running Semel.",
    subcommands: [Show.self, List.self, Forget.self, Resolve.self])

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Show where a record stands.")
    @OptionGroup var record: RecordSelection
    @OptionGroup var call: AdminCall

    func run() throws { AdminCall.show(try record.find(by: call)) }
  }

  struct Forget: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Forget a record: the next delivery of its key runs.",
      discussion: "An owner that is still at work is fenced off, and cannot store its outcome any more.")
    @OptionGroup var record: RecordSelection
    @OptionGroup var call: AdminCall

    func run() throws { AdminCall.showChange(try call.send("DELETE", try record.place(by: call))) }
  }
}

extension Key {
  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List the records that are in flight, of unknown outcome or unreadable, oldest first.")

    enum State: String, ExpressibleByArgument, CaseIterable {
      case inFlight = "in_flight"
      case unknown
      case unreadable
    }

    @Option(help: "Only those in this state.")
    var state: State?

    @Flag(help: "Print JSON, a line each.")
    var json = false

    @OptionGroup var call: AdminCall

    private struct Page: Decodable {
      let records: [Record]
      let next: String?
    }

    private struct Record: Codable {
      let id: String
      let state: String
      /// Of an unreadable record, only the ID and the state are known.
      let attempt: Int?
      let first_seen: String?
      let age_seconds: Double?
    }

    func run() throws {
      var records: [String: Record] = [:]
      var next: String?
      repeat {
        var query = state.map { ["state=\($0.rawValue)"] } ?? []
        if let next { query.append("cursor=\(next)") }
        let page = try call.send(
          "GET", "/v1/records" + (query.isEmpty ? "" : "?") + query.joined(separator: "&"))
        let part = try JSONDecoder().decode(Page.self, from: page)
        for record in part.records { records[record.id] = record }
        next = part.next
      } while next != nil
      let sorted = records.values.sorted {
        ($1.age_seconds ?? .infinity, $0.id) < ($0.age_seconds ?? .infinity, $1.id)
      }
      if json { try printJSON(sorted) } else { printTable(sorted) }
    }

    private func printJSON(_ records: [Record]) throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      for record in records { print(String(decoding: try encoder.encode(record), as: UTF8.self)) }
    }

    private func printTable(_ records: [Record]) {
      print("STATE      ATTEMPT  AGE         ID")
      for record in records {
        let columns = [
          (record.state, 11), (record.attempt.map { "\($0)" } ?? "?", 9),
          (record.age_seconds.map(Self.age) ?? "?", 12),
        ]
        print(
          columns.map { $0.0.padding(toLength: $0.1, withPad: " ", startingAt: 0) }.joined() + record.id)
      }
    }

    private static func age(_ seconds: Double) -> String {
      let whole = Int(seconds)
      return switch whole {
      case ..<60: "\((seconds * 10).rounded() / 10)s"
      case ..<3600: "\(whole / 60)m \(whole % 60)s"
      case ..<86_400: "\(whole / 3600)h \(whole % 3600 / 60)m"
      default: "\(whole / 86_400)d \(whole % 86_400 / 3600)h"
      }
    }
  }
}

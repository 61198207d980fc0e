import ArgumentParser
import Foundation

extension Key {
  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list",
      abstract: "List the records that are in flight, of unknown outcome or unreadable, oldest first.",
      discussion: """
        Route, key, caller and node are those of the latest attempt, as the record holds them; a record that an earlier \
        version has made does not. Key and caller are the digests that the log shows. The cause is that of an unknown \
        outcome.
        """)

    enum State: String, ExpressibleByArgument, CaseIterable {
      case inFlight = "in_flight"
      case unknown
      case unreadable
    }

    @Option(help: "Only those in this state.")
    var state: State?

    @Option(help: "Only those of this route.")
    var route: String?

    @Flag(help: "Print the numbers alone, with those of shadowed routes.")
    var count = false

    @Flag(help: "Print JSON, a line each.")
    var json = false

    @OptionGroup var call: AdminCall

    func validate() throws {
      guard !count || state == nil && route == nil else {
        throw ValidationError("--count is of all open records: leave --state and --route out")
      }
    }

    func run() throws {
      if count { return try printCount() }
      let records = RecordList.of(route, among: try RecordList.all(state: state?.rawValue, by: call))
      if let route { try call.remarkUnknownRoute(route) }
      if state == .unreadable { StandardError.print(Self.lack) }
      if json { try printJSON(records) } else { print(RecordList.table(records)) }
    }

    /// The remark on records that a list of unreadable ones cannot have: it reads no response, and opens none.
    private static let lack =
      "semel: the list may lack completed records whose response alone cannot be read: the access log names them "
      + "(store_unreadable), and semel key show --id ID tells the reason"

    private struct Count: Decodable {
      let inFlight: Int
      let unknown: Int
      let unreadable: Int
    }

    private func printCount() throws {
      let text = try call.send("GET", "/v1/record-counts")
      let count = try call.read(Count.self, from: text, by: RecordList.decoder)
      if json { return AdminCall.show(text) }
      print("in_flight \(count.inFlight)\nunknown \(count.unknown)\nunreadable \(count.unreadable)")
    }

    private func printJSON(_ records: [RecordList.Record]) throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = .sortedKeys
      encoder.keyEncodingStrategy = .convertToSnakeCase
      for record in records { print(String(decoding: try encoder.encode(record), as: UTF8.self)) }
    }
  }
}

enum RecordList {
  /// An unreadable record has only the ID and the state.
  struct Record: Codable {
    let id: String
    let state: String
    let attempt: Int?
    let status: Int?
    let firstSeen: String?
    var ageSeconds: Double?
    var unknownForSeconds: Double?
    let route: String?
    let keyDigest: String?
    let callerDigest: String?
    let cause: String?
    let deliveries: Int?
    let lastSeen: String?
    let lastStatus: Int?
    let node: String?
    let nextDelivery: String?
    let shadowed: Bool?
  }

  private struct Page: Decodable {
    let records: [Record]
    let next: String?
  }

  /// All records of a state, or of each, the oldest first, and all ages those at the end. One may be on two pages.
  static func all(state: String?, by call: AdminCall) throws -> [Record] {
    var records: [String: (record: Record, readAt: ContinuousClock.Instant)] = [:]
    var next: String?
    repeat {
      var query = state.map { ["state=\($0)"] } ?? []
      if let next { query.append("cursor=\(next)") }
      let json = try call.send(
        "GET", "/v1/records" + (query.isEmpty ? "" : "?") + query.joined(separator: "&"))
      let page = try call.read(Page.self, from: json, by: decoder)
      let readAt = ContinuousClock.now
      for record in page.records { records[record.id] = (record: record, readAt: readAt) }
      next = page.next
    } while next != nil
    let end = ContinuousClock.now
    // By the time and not by the age, which each page states as of its own time.
    return records.values.map { $0.record.older(by: end - $0.readAt) }.sorted {
      ($0.firstSeen ?? "", $0.id) < ($1.firstSeen ?? "", $1.id)
    }
  }

  /// The records of a route; all of them for `nil`. If there are none, names the routes that have some.
  static func of(_ route: String?, among records: [Record]) -> [Record] {
    guard let route else { return records }
    let found = records.filter { $0.route == route }
    let others = Set(records.compactMap(\.route)).sorted()
    if found.isEmpty, !others.isEmpty {
      StandardError.print(
        "semel: no such record names the route \(route); there are some of \(others.joined(separator: ", "))")
    }
    return found
  }

  static var decoder: JSONDecoder {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return decoder
  }

  static func table(_ records: [Record]) -> String {
    let head = [
      "STATE", "ATTEMPT", "AGE", "FIRST SEEN", "ROUTE", "KEY", "CALLER", "NODE", "CAUSE", "ID",
    ]
    let rows = records.map { (record: Record) -> [String] in
      let attempt = record.attempt.map { "\($0)" } ?? notKnown
      let times = [record.ageSeconds.map(Table.age), record.firstSeen].map { $0 ?? notKnown }
      let cause = record.cause ?? (record.state == "unknown" ? notKnown : "-")
      return [record.state, attempt] + times + record.origin + [cause, record.id]
    }
    return Table.text([head] + rows)
  }

  static let notKnown = "not known"
}

extension RecordList.Record {
  /// The record as it stands some time later, if nothing happens to it.
  fileprivate func older(by span: Duration) -> Self {
    let passed: Double = span / Duration.seconds(1)
    let later = { (seconds: Double) -> Double in ((seconds + passed) * 1000).rounded() / 1000 }
    var record = self
    record.ageSeconds = ageSeconds.map(later)
    record.unknownForSeconds = unknownForSeconds.map(later)
    return record
  }

  var origin: [String] {
    // A record with a node may still have been made without digests.
    let missing = node == nil ? RecordList.notKnown : "-"
    return [route, keyDigest, callerDigest, node].map { $0 ?? missing }
  }
}

/// Lines of columns for a terminal.
enum Table {
  static func text(_ rows: [[String]]) -> String {
    let count = rows.map(\.count).max() ?? 0
    let widths = (0..<count).map { column in
      rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
    }
    return rows.map { row in
      row.enumerated().map { column, text in
        column == row.count - 1 ? text : text.padding(to: widths[column] + 2)
      }.joined()
    }.joined(separator: "\n")
  }

  static func age(_ seconds: Double) -> String {
    let whole = Int(seconds)
    return switch whole {
    case ..<60: "\((seconds * 10).rounded() / 10)s"
    case ..<3600: "\(whole / 60)m \(whole % 60)s"
    case ..<86_400: "\(whole / 3600)h \(whole % 3600 / 60)m"
    default: "\(whole / 86_400)d \(whole % 86_400 / 3600)h"
    }
  }
}

func counted(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

extension String {
  func padding(to length: Int) -> String { self + String(repeating: " ", count: max(1, length - count)) }
}

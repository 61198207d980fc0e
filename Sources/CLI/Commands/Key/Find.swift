import ArgumentParser
import Foundation

extension Key {
  struct Find: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "find",
      abstract: "Find the records of a key, of every caller, without anyone's token.",
      discussion: """
        Searches the whole store in small steps, which takes a while where there are many records, and shows where \
        those stand that it finds. With --open it shows open records alone, which takes no time where a key is given. Records of earlier versions of Semel are found only among the requests that the node \
        of the admin listener has seen lately. It also prints the digest by which the log of every node shows the key.
        """)

    @OptionGroup var key: StatedKey

    @Option(help: "The digest of a key, as the log shows it.")
    var keyDigest: String?

    @Option(help: "The digest of a caller, as the log shows it.")
    var callerDigest: String?

    @Option(help: "Only records of this route.")
    var route: String?

    @Flag(help: "Only records that are in flight, of unknown outcome or unreadable.")
    var open = false

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var call: AdminCall

    func validate() throws {
      guard !key.isEmpty || keyDigest != nil || callerDigest != nil else {
        throw ValidationError("give --key, --key-digest or --caller-digest")
      }
      try require(key.isEmpty || keyDigest == nil, "give --key or --key-digest, not both")
      for (name, digest) in [("--key-digest", keyDigest), ("--caller-digest", callerDigest)] {
        guard let digest, !Self.isDigest(digest) else { continue }
        throw ValidationError("\(name) is the eight hexadecimal digits that the log shows")
      }
    }

    private static func isDigest(_ text: String) -> Bool {
      text.utf8.count == 8 && text.allSatisfy { $0.isASCII && $0.isHexDigit }
    }

    /// The number of records from which the search goes no further: as many as this process can hold with ease.
    private static let maxRecords = 100_000

    private struct Search: Encodable {
      var key: StatedKey?
      var keyDigest: String?
      var callerDigest: String?
      var route: String?
      var cursor: String?
      var open: Bool?
    }

    private struct Part: Decodable {
      let keyDigests: [String]
      let records: [RecordList.Record]
      let next: String?
      let searchedEvents: Int
      let searchedSince: String?
      let node: String
    }

    /// The parts of the result, as text and decoded, until the store is searched or enough records are found.
    private func search() throws -> [(text: Data, part: Part)] {
      let encoder = JSONEncoder()
      encoder.keyEncodingStrategy = .convertToSnakeCase
      var search = Search(
        key: key.isEmpty ? nil : key, keyDigest: keyDigest, callerDigest: callerDigest, route: route,
        open: open ? true : nil)
      var parts: [(text: Data, part: Part)] = []
      var count = 0
      repeat {
        let text = try call.send("POST", "/v1/records/search", body: Array(try encoder.encode(search)))
        let part = try call.read(Part.self, from: text, by: RecordList.decoder)
        parts.append((text, part))
        count += part.records.count
        search.cursor = part.next
      } while search.cursor != nil && count < Self.maxRecords
      return parts
    }

    func run() throws {
      let parts = try search()
      let isWhole = parts.last?.part.next == nil
      if !isWhole { remarkEnd() }
      if json { return try printJSON(parts.map(\.text)) }
      var records: [String: RecordList.Record] = [:]
      for record in parts.flatMap(\.part.records) { records[record.id] = record }
      let sorted = records.values.sorted { ($1.firstSeen ?? "", $0.id) < ($0.firstSeen ?? "", $1.id) }
      show(sorted, parts[0].part, isWhole: isWhole)
    }

    private func printJSON(_ parts: [Data]) throws {
      var whole: [String: Any] = [:]
      var records: [String: Any] = [:]
      for text in parts {
        guard let part = try JSONSerialization.jsonObject(with: text) as? [String: Any] else { continue }
        whole = part
        for record in part["records"] as? [[String: Any]] ?? [] {
          if let id = record["id"] as? String { records[id] = record }
        }
      }
      whole["records"] = records.sorted { $0.key < $1.key }.map(\.value)
      AdminCall.show(try JSONSerialization.data(withJSONObject: whole))
    }

    private func show(_ records: [RecordList.Record], _ first: Part, isWhole: Bool) {
      for digest in first.keyDigests { print("the log shows this key as key=\(digest)") }
      if records.isEmpty {
        print("there is no such record")
      } else {
        print(Self.table(records))
        let callers = Set(records.compactMap(\.callerDigest)).count
        print("\(counted(records.count, "record")) of \(counted(callers, "caller"))")
      }
      let place = open ? "the open records" : isWhole ? "the whole store" : "a part of the store"
      let since = first.searchedSince.map { " since \($0)" } ?? ""
      print(
        "searched: \(place), and the latest \(counted(first.searchedEvents, "event")) of node \(first.node)\(since)"
      )
    }

    private func remarkEnd() {
      var narrower: [String] = []
      if key.isEmpty, keyDigest == nil { narrower.append("--key") }
      if callerDigest == nil { narrower.append("--caller-digest") }
      if route == nil { narrower.append("--route") }
      let remedy = narrower.isEmpty ? "" : ": give \(narrower.joined(separator: " or ")), too"
      StandardError.print(
        "semel: the search has ended at \(Self.maxRecords) records, before the end of the store\(remedy)")
    }

    private static func table(_ records: [RecordList.Record]) -> String {
      let head = ["STATE", "ATTEMPT", "STATUS", "ROUTE", "KEY", "CALLER", "NODE", "FIRST SEEN", "ID"]
      let rows = records.map { (record: RecordList.Record) -> [String] in
        let numbers = [record.attempt, record.status].map { number in number.map { "\($0)" } ?? "-" }
        return [record.state] + numbers + record.origin + [record.firstSeen ?? "-", record.id]
      }
      return Table.text([head] + rows)
    }
  }
}

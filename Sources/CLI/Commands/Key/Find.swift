import ArgumentParser
import Foundation

extension Key {
  /// `semel key find`: the records of a key, of all its callers, or those of a caller.
  struct Find: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Find the records of a key, of every caller, without anyone's token.",
      discussion: """
        Searches the requests that the node of the admin listener has seen lately, and shows where their records stand \
        now. It also prints the digest by which the log of every node shows the key: a line of an older request, or of \
        another node, names the record, which `semel key show --id` finds.
        """)

    @Option(
      parsing: .unconditionalSingleValue,
      help: "The idempotency key. Once for each part of a key that has several.")
    var key: [String] = []

    @Option(help: "The digest of a key, as the log shows it.")
    var keyDigest: String?

    @Option(help: "The digest of a caller, as the log shows it.")
    var callerDigest: String?

    @Option(help: "Only records of this route.")
    var route: String?

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var call: AdminCall

    func validate() throws {
      guard !key.isEmpty || keyDigest != nil || callerDigest != nil else {
        throw ValidationError("give --key, --key-digest or --caller-digest")
      }
    }

    private struct Search: Encodable {
      var key: RecordSelection.Texts?
      var keyDigest: String?
      var callerDigest: String?
      var route: String?
    }

    private struct Found: Decodable {
      let keyDigests: [String]
      let records: [RecordList.Record]
      let more: Bool
      let searchedEvents: Int
      let searchedSince: String?
      let node: String
    }

    func run() throws {
      let encoder = JSONEncoder()
      encoder.keyEncodingStrategy = .convertToSnakeCase
      let search = Search(
        key: key.isEmpty ? nil : RecordSelection.Texts(texts: key), keyDigest: keyDigest,
        callerDigest: callerDigest, route: route)
      let reply = try call.send("POST", "/v1/records/search", body: Array(try encoder.encode(search)))
      if json { return AdminCall.show(reply) }
      show(try RecordList.decoder.decode(Found.self, from: reply))
    }

    private func show(_ found: Found) {
      for digest in found.keyDigests { print("the log shows this key as key=\(digest)") }
      if found.records.isEmpty {
        print("node \(found.node) knows no such record")
      } else {
        print(Self.table(found.records))
        let callers = Set(found.records.compactMap(\.callerDigest)).count
        print("\(Self.count(found.records.count, "record")) of \(Self.count(callers, "caller"))")
      }
      if found.more { print("there are more than are shown: give --route or --caller-digest, too") }
      let since = found.searchedSince.map { " since \($0)" } ?? ""
      print("searched: the latest \(Self.count(found.searchedEvents, "event")) of node \(found.node)\(since)")
    }

    private static func table(_ records: [RecordList.Record]) -> String {
      let head = ["STATE", "ATTEMPT", "STATUS", "ROUTE", "KEY", "CALLER", "DELIVERIES", "LAST SEEN", "ID"]
      let rows = records.map { (record: RecordList.Record) -> [String] in
        let numbers = [record.attempt, record.status].map { number in number.map { "\($0)" } ?? "-" }
        let named = [record.route, record.keyDigest, record.callerDigest].map { $0 ?? "-" }
        let deliveries = record.deliveries.map { "\($0)" } ?? "-"
        return [record.state] + numbers + named + [deliveries, record.lastSeen ?? "-", record.id]
      }
      return Table.text([head] + rows)
    }

    private static func count(_ number: Int, _ noun: String) -> String {
      "\(number) \(noun)\(number == 1 ? "" : "s")"
    }
  }
}

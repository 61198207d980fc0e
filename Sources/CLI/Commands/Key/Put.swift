import ArgumentParser
import Foundation

extension Key {
  /// `semel key put`: the outcome of a request that was carried out without Semel.
  struct Put: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Record the outcome of a request that was carried out without Semel, such as by hand.",
      discussion: """
        The record must not exist yet, or be free. Deliveries of the key with this payload then get the stated response, \
        and the backend does not run them. The payload is what the client sends: without it, its delivery is refused as \
        another payload (409 payload_mismatch). Semel refuses to make a record that no delivery could find: on a \
        shadowed route, or with a payload that meets another route, is refused there, or holds another key or caller than \
        the record. `semel key resolve --amend` corrects the statement.
        """)

    @Flag(help: "The request was carried out. Required, since one that was not needs no record.")
    var applied = false

    @OptionGroup var outcome: OutcomeStatement

    @Option(
      name: [.customShort("H"), .customLong("request-header")], parsing: .unconditionalSingleValue,
      help:
        "A field of the client's request that its fingerprint contains, such as 'Content-Type: application/json'."
    )
    var requestHeader: [String] = []

    @Option(
      name: [.customShort("d"), .customLong("data")], parsing: .unconditional,
      help: "The body of the client's request; @FILE for that of a file.")
    var data: String?

    @Option(help: "The query of the client's request, without its question mark.")
    var query: String?

    @OptionGroup var record: NamedRecord
    @OptionGroup var call: AdminCall

    func validate() throws {
      guard applied else { throw ValidationError("give --applied") }
      guard outcome.status != nil else {
        throw ValidationError("give the --status that later deliveries get")
      }
      guard record.isComplete else { throw ValidationError("give --route, --key and --caller") }
      for line in requestHeader where !line.contains(":") { throw ValidationError("-H is 'Name: value'") }
      if let name = OutcomeStatement.repeatedName(in: requestHeader) {
        throw ValidationError("-H \(name) is given twice: a payload can have one line of each field")
      }
    }

    private struct Statement: Encodable {
      struct Payload: Encodable {
        var query: String?
        var headers: [String: String]
        var body_base64: String
      }

      var record: NamedRecord.Query
      var payload: Payload
      var resolution: OutcomeStatement.Resolution
    }

    func run() throws {
      let statement = Statement(
        record: record.query,
        payload: .init(
          query: query, headers: OutcomeStatement.members(of: requestHeader),
          body_base64: try content().base64EncodedString()),
        resolution: try outcome.applied(route: record.route))
      AdminCall.showChange(
        try call.record("POST", "/v1/records/put", body: try AdminCall.json(of: statement)))
      record.remarkMissingHost()
    }

    private func content() throws -> Data {
      guard let data else { return Data() }
      guard data.hasPrefix("@") else { return Data(data.utf8) }
      return try OutcomeStatement.content(of: String(data.dropFirst()), option: "-d")
    }
  }
}

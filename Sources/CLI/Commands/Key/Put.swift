import ArgumentParser
import Calls
import Foundation

extension Key {
  struct Put: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "put",
      abstract: "Record the outcome of a request that was carried out without Semel, such as by hand.",
      discussion: """
        The record must not exist yet, or be free. Deliveries of the key with this payload then get the stated response, \
        and the backend does not run them. The payload is what the client sends: without it, its delivery is refused as \
        another payload (409 payload_mismatch). Semel refuses to make a record that no delivery could find: on a \
        shadowed route, or with a payload that meets another route, is refused there, or holds another key or caller than \
        the record. `semel key resolve --amend` corrects the statement.

        With --stream, standard input has one JSON document a line, as POST /v1/records/put takes it, such as those of \
        an earlier table of keys. Each is put by itself; a line that is refused is reported, and the others are put.
        """)

    @Flag(help: "Read one JSON document a line from standard input, as POST /v1/records/put takes it.")
    var stream = false

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
      guard !stream else {
        let isAlone = !applied && outcome.isEmpty && requestHeader.isEmpty && data == nil && query == nil
        guard isAlone, record.route == nil, record.hasNoParts else {
          throw ValidationError("--stream takes everything from its lines: leave the other options out")
        }
        return
      }
      guard applied else { throw ValidationError("give --applied") }
      try require(outcome.status != nil, "give the --status that later deliveries get")
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
      guard !stream else { return try putLines() }
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

    /// Puts the document of each line, and prints the number of those that were put.
    private func putLines() throws {
      var (number, put, isRefused) = (0, 0, false)
      while let line = readLine() {
        number += 1
        guard !line.allSatisfy(\.isWhitespace) else { continue }
        let response = try call.exchange("POST", "/v1/records/put", body: Array(line.utf8))
        if 200..<300 ~= response.status {
          guard AdminCall.isRecord(Data(response.body), nil) else { throw call.otherListener }
          put += 1
        } else {
          StandardError.print("semel: line \(number) was not put")
          call.printRefusal(response)
          // The same token would be refused again.
          if [401, 403].contains(response.status) { throw ExitCode.failure }
          isRefused = true
        }
      }
      print("\(put) put")
      if isRefused { throw ExitCode.failure }
    }

    private func content() throws -> Data {
      guard let data else { return Data() }
      guard data.hasPrefix("@") else { return Data(data.utf8) }
      return try OutcomeStatement.content(of: String(data.dropFirst()), option: "-d")
    }
  }
}

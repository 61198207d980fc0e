import ArgumentParser
import Foundation

extension Key {
  /// `semel key resolve`: an operator's statement about an unknown outcome.
  struct Resolve: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "State the outcome of a request for which it is unknown.",
      discussion: """
        --applied: the backend did run it, and later deliveries get a response with this status, these headers and \
        this body. --not-applied: it did not, and the next delivery runs.
        """)

    @Flag(help: "The backend did run it.")
    var applied = false

    @Flag(help: "The backend did not run it.")
    var notApplied = false

    @Flag(help: "Correct an earlier resolution; an outcome that is still unknown may be resolved, too.")
    var amend = false

    @Option(help: "The status of the response.")
    var status: Int?

    @Option(help: "A header of the response, 'Name: value'.")
    var header: [String] = []

    @Option(help: "The file with the body of the response; - for standard input.")
    var body: String?

    @OptionGroup var record: RecordSelection
    @OptionGroup var call: AdminCall

    func validate() throws {
      guard applied != notApplied else { throw ValidationError("give --applied or --not-applied") }
      guard applied || status == nil && header.isEmpty && body == nil else {
        throw ValidationError("--not-applied leaves no response: take --status, --header and --body out")
      }
      guard !applied || status != nil else {
        throw ValidationError("give the --status that later deliveries get")
      }
      for line in header where !line.contains(":") {
        throw ValidationError("--header is 'Name: value'")
      }
    }

    private struct Resolution: Encodable {
      var outcome: String
      var status: Int?
      var headers: [String: String]?
      var body_base64: String?
      var route: String?
      var amend: Bool?
    }

    func run() throws {
      var resolution = Resolution(outcome: applied ? "applied" : "not_applied")
      if applied {
        resolution.status = status
        resolution.headers = headers
        resolution.body_base64 = try content().base64EncodedString()
        resolution.route = record.route
      }
      if amend { resolution.amend = true }
      let place = try record.place(by: call)
      AdminCall.showChange(try call.send("POST", place + "/resolve", resolution))
    }

    private var headers: [String: String] {
      header.reduce(into: [:]) { headers, line in
        let pair = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        headers[pair[0].trimmingCharacters(in: .whitespaces)] = pair[1].trimmingCharacters(in: .whitespaces)
      }
    }

    private func content() throws -> Data {
      guard let body else { return Data() }
      if body == "-" { return FileHandle.standardInput.readDataToEndOfFile() }
      guard let data = FileManager.default.contents(atPath: body) else {
        StandardError.print("semel: \(body) cannot be read")
        throw ExitCode.failure
      }
      return data
    }
  }
}

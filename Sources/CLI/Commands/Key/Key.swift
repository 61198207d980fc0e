import ArgumentParser
import Foundation
import Idempotency

struct Key: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "key",
    abstract: "Show, find, list, forget, resolve and put the records of a running Semel.",
    subcommands: [Show.self, Find.self, List.self, Forget.self, Resolve.self, Put.self])

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show",
      abstract: "Show where a record stands, and what the next delivery of its key will get.")
    @OptionGroup var record: RecordSelection
    @OptionGroup var call: AdminCall

    func validate() throws { try record.requireOne() }

    func run() throws { AdminCall.show(try record.find(by: call)) }
  }

  struct Forget: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "forget",
      abstract: "Forget a record: the next delivery of its key runs.",
      discussion: "An owner that is still at work is fenced off, and cannot store its outcome any more.")
    @OptionGroup var record: RecordSelection
    @OptionGroup var call: AdminCall

    func validate() throws { try record.requireOne() }

    func run() throws {
      let id = try record.recordID(by: call)
      AdminCall.showChange(try call.record("DELETE", RecordSelection.place(of: id), id: id))
    }
  }
}

struct OutcomeStatement: ParsableArguments {
  @Option(help: "The status of the response.")
  var status: Int?

  @Option(help: "A header of the response, 'Name: value'.")
  var header: [String] = []

  @Option(help: "The file with the body of the response; - for standard input.")
  var body: String?

  func validate() throws {
    try require(200...599 ~= status ?? 200, "--status is that of a final response, 200 to 599")
    for line in header where !line.contains(":") { throw ValidationError("--header is 'Name: value'") }
    if let name = Self.repeatedName(in: header) {
      throw ValidationError("--header \(name) is given twice: give it once, with a comma between its values")
    }
  }

  /// The name of a field that has several lines, in lower case; `nil` if none has.
  static func repeatedName(in lines: [String]) -> String? {
    let names = lines.map { $0.prefix { $0 != ":" }.trimmingCharacters(in: .whitespaces).lowercased() }
    return names.enumerated().first { names[..<$0.offset].contains($0.element) }?.element
  }

  var isEmpty: Bool { status == nil && header.isEmpty && body == nil }

  struct Resolution: Encodable {
    var outcome: String
    var status: Int?
    var headers: [String: String]?
    var body_base64: String?
    var route: String?
    var amend: Bool?
    var attempt: Int?
  }

  /// The statement that the request was applied, with this response.
  func applied(route: String?) throws -> Resolution {
    Resolution(
      outcome: "applied", status: status, headers: Self.members(of: header),
      body_base64: try body.map { try Self.content(of: $0, option: "--body") }?.base64EncodedString() ?? "",
      route: route)
  }

  static func members(of lines: [String]) -> [String: String] {
    lines.reduce(into: [:]) { members, line in
      let pair = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      members[pair[0].trimmingCharacters(in: .whitespaces)] = pair[1].trimmingCharacters(in: .whitespaces)
    }
  }

  /// The content of a file with a body, or of standard input, for the option that names it.
  static func content(of path: String, option: String) throws -> Data {
    if path == "-" { return FileHandle.standardInput.readDataToEndOfFile() }
    return try InputFile.require(path, of: option)
  }
}

extension Key {
  struct Resolve: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "resolve",
      abstract: "State the outcome of a request for which it is unknown, or of many.",
      discussion: """
        --applied: the backend did run it, and later deliveries get a response with this status, these headers and \
        this body. --not-applied: it did not, and the next delivery runs.

        The response is kept as the record's route has it. A record that does not name its route, or names one that is \
        gone, takes --route beside --id; without it, its response is kept for a day.

        --attempt binds the statement to the attempt that you have looked at, as key show and key list number it: if \
        another delivery has run since, nothing is changed. Without it the statement is about the last attempt, \
        whichever that is by then.

        With --older-than and --route (or --all-routes) in place of a record, --not-applied is for all unknown \
        outcomes of the route that are older: they are counted first, and no more than 1,000 are resolved at once. One of \
        which another attempt has been made since it was listed is left, and reported as skipped. A record names the \
        route of its latest attempt; records of an earlier version, which do not, are left by --route, and counted.
        """)

    @Flag(help: "The backend did run it.")
    var applied = false

    @Flag(help: "The backend did not run it.")
    var notApplied = false

    @Flag(help: "Correct an earlier resolution; an outcome that is still unknown may be resolved, too.")
    var amend = false

    @Option(help: "Only if this attempt is the record's last one.")
    var attempt: Int?

    @OptionGroup var outcome: OutcomeStatement

    @Option(help: "Resolve all that have been unknown for longer, such as 90s, 1h or 2d.")
    var olderThan: String?

    @Flag(help: "Of any route, also where the record does not name it.")
    var allRoutes = false

    @Flag(help: "Do not ask before resolving many.")
    var yes = false

    @OptionGroup var record: RecordSelection
    @OptionGroup var call: AdminCall

    func validate() throws {
      guard applied != notApplied else { throw ValidationError("give --applied or --not-applied") }
      guard applied || outcome.isEmpty else {
        throw ValidationError("--not-applied leaves no response: take --status, --header and --body out")
      }
      try require(!applied || outcome.status != nil, "give the --status that later deliveries get")
      try require(attempt ?? 1 >= 1, "--attempt is the number of an attempt, 1 or more")
      guard let olderThan else {
        guard !allRoutes, !yes else { throw ValidationError("--all-routes and --yes go with --older-than") }
        return try record.requireOne(takesRoute: applied)
      }
      try require(
        Milliseconds(text: olderThan) != nil, "--older-than is a time with its unit, such as 90s, 1h or 2d")
      try requireMany()
    }

    private func requireMany() throws {
      try require(
        attempt == nil, "--attempt goes with one record; --older-than takes each one's as it is listed")
      try require(notApplied, "--applied goes with one record; --older-than goes with --not-applied")
      try require(!amend, "--amend goes with one record; --older-than takes unknown outcomes alone")
      try require(
        record.isRouteAlone || record.isEmpty,
        "--older-than takes all records of a route: leave out --id, --key, --caller, --path, --method and --host"
      )
      try require(
        !allRoutes || record.route == nil, "--route and --all-routes are both given: give one of the two")
      try require(allRoutes || record.route != nil, "--older-than goes with --route, or with --all-routes")
    }

    func run() throws {
      if let span = olderThan.flatMap(Milliseconds.init(text:)) {
        let seconds = Double(span.count) / 1000
        return try BulkResolution(route: record.route, seconds: seconds, isConfirmed: yes, call: call).run()
      }
      var resolution =
        applied
        ? try outcome.applied(route: record.route) : OutcomeStatement.Resolution(outcome: "not_applied")
      if amend { resolution.amend = true }
      resolution.attempt = attempt
      let id = try record.recordID(by: call)
      AdminCall.showChange(
        try call.record(
          "POST", RecordSelection.place(of: id) + "/resolve", body: try AdminCall.json(of: resolution), id: id
        ))
    }
  }
}

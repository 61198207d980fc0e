import ArgumentParser
import Conformance
import Foundation
import Glibc
import Idempotency

struct ConformanceCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "conformance",
    abstract: "Check any HTTP endpoint against the draft of the Idempotency-Key header field.",
    discussion: """
      Sends requests over connections of its own and judges the responses by \
      draft-ietf-httpapi-idempotency-key-header-07. The endpoint need not be Semel's. It CREATES THINGS there: with \
      --dry-run it only states what it would send, and a target that is not on this machine requires --yes. Nobody \
      else must use the endpoint meanwhile, since executions are counted by the oracle.

      The report begins with three answers, and the command ends with them on standard error: is anyone charged twice, \
      does anyone see another's response, what is missing. The report ends with the configuration that Semel \
      recommends for the API.

      Verdicts: pass; fail (a MUST is violated); warn (a SHOULD); info (a behaviour that the draft leaves open); skip; \
      inconclusive (for want of an oracle, never passed). Exit codes: 0 no MUST is violated, 1 one is, or the request \
      is not accepted at all, 2 wrong usage, or an oracle that cannot be read before anything is created, 3 the \
      endpoint or the oracle is not reached.
      """)

  @Argument(help: "The endpoint, such as https://api.example.com/v1/orders.")
  var url: String

  @OptionGroup(title: "Requests")
  var requests: ConformanceRequests

  @OptionGroup(title: "Oracle of executions")
  var oracle: ConformanceOracle

  @Option(help: "The expectations: ietf (the draft to the letter), stripe or semel.")
  var profile = "ietf"

  @Option(help: "Only these sections and cases, such as 2.6,2.7/missing-400.")
  var only: String?

  @Option(help: "Only requirements of this level and above: must, should or may.")
  var level = Level.may

  @Flag(help: "Print the cases and the number of requests, and send nothing.")
  var dryRun = false

  @Flag(help: "Yes, create things at an endpoint that is not on this machine.")
  var yes = false

  @Option(help: "The form of the report: text, tap (14), junit or json.")
  var format = Report.Format.text

  @Option(help: "The file for the report, instead of standard output.")
  var output: String?

  @Option(help: "A file with the certificates to trust, instead of the system's.")
  var ca: String?

  func run() async throws {
    let setup = try self.setup()
    let selection = Plan.Selection(
      only: (only ?? "").split(separator: ",").map(String.init), level: level)
    if let unknown = selection.unknown {
      throw ValidationError("--only: there is no section or case \(unknown)")
    }
    let plan = Plan(setup, selection)
    if dryRun { return print(plan.preview(of: setup)) }
    StandardError.print(plan.announcement(of: setup))
    guard setup.endpoint.isLoopback || yes else {
      throw ValidationError("\(setup.endpoint.authority) is not on this machine: give --yes to send them")
    }
    try prepareOutput()
    let report = try await report(setup, plan)
    try write(report.text(format))
    // The last lines that a terminal shows, also where the report goes to a file or is long.
    StandardError.print(report.answers.joined(separator: "\n"))
    if report.hasFailed { throw ExitCode.failure }
  }

  private func report(_ setup: Setup, _ plan: Plan) async throws -> Report {
    do {
      let run = try ConformanceRun(setup, plan, authority: ca)
      if let fault = try await run.oracleFault() {
        throw ValidationError(
          "\(oracle.place): the executions cannot be read (\(fault)); nothing was created")
      }
      defer { Terminal.showProgress("") }
      return try await run.run { done, all in
        Terminal.showProgress("\(done) of \(all) scripts have ended …")
      }
    } catch let failure as NotReached {
      StandardError.print("semel: not reached: \(failure)")
      throw ExitCode.notReached
    } catch let failure as ConformanceRun.BadAuthority {
      throw ValidationError("--ca: \(failure)")
    }
  }

  /// Creates the report's file, before anything is created at the endpoint. Its content stays until the report comes.
  private func prepareOutput() throws {
    guard let output else { return }
    let descriptor = open(output, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw Self.unwritten(output) }
    close(descriptor)
  }

  private func write(_ text: String) throws {
    guard let output else { return print(text, terminator: "") }
    let bytes = Array(text.utf8)
    guard let file = fopen(output, "w") else { throw Self.unwritten(output) }
    defer { fclose(file) }
    guard fwrite(bytes, 1, bytes.count, file) == bytes.count, fflush(file) == 0 else {
      throw Self.unwritten(output)
    }
  }

  private static func unwritten(_ output: String) -> ExitCode {
    StandardError.print("semel: \(output) cannot be written: \(String(cString: strerror(errno)))")
    return .failure
  }

  private func setup() throws -> Setup {
    guard let endpoint = Endpoint(url) else { throw ValidationError(Endpoint.fault(of: url)) }
    if let ca, let fault = InputFile.fault(of: ca) {
      throw ValidationError("--ca: \(ca) cannot be read: \(fault)")
    }
    guard let expected = ExpectedBehaviour.all.first(where: { $0.name == profile }) else {
      throw ValidationError("--profile is ietf, stripe or semel, not \(profile)")
    }
    var setup = try requests.setup(endpoint)
    setup.expected = expected
    setup.oracle = try oracle.settings()
    return setup
  }
}

extension ExitCode {
  static let notReached = ExitCode(3)
}

extension Level: ExpressibleByArgument {}
extension Report.Format: ExpressibleByArgument {}

struct ConformanceRequests: ParsableArguments {
  @Option(help: "The file with the body of a request that the endpoint accepts.")
  var request: String

  @Option(
    help: "The JSON pointer to the member that makes another payload; else the first one that can be changed."
  )
  var vary: String?

  @Option(help: "A field of every request, such as 'Authorization: Bearer …'. Repeatable.")
  var header: [String] = []

  @Option(help: "The field that makes another caller, such as 'Authorization: Bearer …'.")
  var otherCaller: String?

  @Option(help: "The method.")
  var method = "POST"

  @Option(help: "The field with the key.")
  var keyHeader = "Idempotency-Key"

  @Option(help: "The file with the body of a request that takes a second or more.")
  var slowRequest: String?

  @Option(help: "The file with the body of a request at which the application fails.")
  var failingRequest: String?

  @Option(help: "The time after which the endpoint forgets a key, such as 5s: it is waited for.")
  var ttl: String?

  func setup(_ endpoint: Endpoint) throws -> Setup {
    let headers = try header.map { try Self.line($0, "--header") }
    var payloads = Payloads(
      try Self.file(request), mediaType: headers.first { $0.name.lowercased() == "content-type" }?.value,
      vary: vary, slow: try slowRequest.map(Self.file))
    payloads.failing = try failingRequest.map(Self.file)
    if let vary, !vary.isEmpty, !vary.hasPrefix("/") {
      throw ValidationError("--vary is a JSON pointer, which begins with a slash: /\(vary)")
    }
    if vary != nil, payloads.other == nil {
      throw ValidationError("--vary: the request has no string, number or boolean there")
    }
    var setup = Setup(endpoint: endpoint, payloads: payloads)
    setup.headers = headers
    setup.otherCaller = try otherCaller.map { try Self.line($0, "--other-caller") }
    setup.method = try Self.token(method, "--method")
    setup.keyHeader = try Self.token(keyHeader, "--key-header")
    setup.ttl = try ttl.map(Self.duration)
    if let fault = setup.fieldFault { throw ValidationError(fault) }
    return setup
  }

  private static func file(_ path: String) throws -> [UInt8] {
    do throws(InputFile.Unreadable) {
      return Array(try InputFile.content(of: path))
    } catch {
      throw ValidationError("\(error)")
    }
  }

  private static func line(_ text: String, _ option: String) throws -> HeaderLine {
    guard let line = HeaderLine(text) else { throw ValidationError("\(option) has the form 'Name: value'") }
    return line
  }

  private static func token(_ text: String, _ option: String) throws -> String {
    try require(HeaderLine("\(text):")?.name == text, "\(option): \(text) is no token")
    return text
  }

  private static func duration(_ text: String) throws -> Duration {
    guard let span = Milliseconds(text: text) else { throw ValidationError("--ttl is a duration such as 5s") }
    return .milliseconds(span.count)
  }
}

struct ConformanceOracle: ParsableArguments {
  @Option(help: "The URL of a JSON document with the number of executions.")
  var countUrl: String?

  @Option(help: "The JSON pointer to that number.")
  var count: String?

  @Option(help: "The URL of a JSON list of everything that was created.")
  var listUrl: String?

  @Option(
    help: "The JSON pointer to the id, in an element of that list or, without a list, in the responses.")
  var id: String?

  var place: String { listUrl == nil ? "--count-url, --count" : "--list-url, --id" }

  func settings() throws -> OracleSettings? {
    if countUrl != nil && listUrl != nil { throw ValidationError("give --count-url or --list-url, not both") }
    if (countUrl == nil) != (count == nil) {
      throw ValidationError("--count-url and --count belong together")
    }
    if let countUrl, let count {
      return .count(try Self.endpoint(countUrl), pointer: try Self.pointer(count))
    }
    if let listUrl {
      guard let id else { throw ValidationError("--list-url needs --id") }
      return .list(try Self.endpoint(listUrl), id: try Self.pointer(id))
    }
    return try id.map { .responses(id: try Self.pointer($0)) }
  }

  private static func endpoint(_ url: String) throws -> Endpoint {
    guard let endpoint = Endpoint(url) else {
      throw ValidationError(Endpoint.fault(of: url))
    }
    return endpoint
  }

  private static func pointer(_ text: String) throws -> String {
    try require(
      text.isEmpty || text.hasPrefix("/"), "\(text) is no JSON pointer, which begins with a slash: /\(text)")
    return text
  }
}

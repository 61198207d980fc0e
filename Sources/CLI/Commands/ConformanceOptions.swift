import ArgumentParser
import Conformance
import Foundation
import Idempotency

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

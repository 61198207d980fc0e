import Conformance
import TestSupport
import Testing

/// Whole checks of endpoints whose responses have no end.
struct EndlessTests {
  /// A way in which a response does not end, and its name in the verdict.
  enum Ending: String, CaseIterable {
    case body = "a body of more than 8 MiB"
    case interim = "more than 64 interim responses"
    case silence = "no complete response within 1 s"
    case pause = "no complete response within 1 s, after its head"

    var start: String {
      switch self {
      case .body: "HTTP/1.1 201 Created\r\nContent-Length: 99999999999\r\n\r\n"
      case .interim, .silence: ""
      case .pause: "HTTP/1.1 201 Created\r\n\r\n{"
      }
    }

    /// Repeated until the client goes away; empty: nothing follows.
    var rest: String {
      switch self {
      case .body: String(repeating: "x", count: 64 << 10)
      case .interim: String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 1000)
      case .silence, .pause: ""
      }
    }

    var reason: String { String(rawValue.prefix { $0 != "," }) }
  }

  /// A server whose responses do not end, with `firstIsGood` but for the first one.
  private func server(_ ending: Ending, firstIsGood: Bool) throws -> RawServer {
    try RawServer { connection in
      try connection.readRequest()
      if firstIsGood, connection.number == 1 {
        return try connection.write("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
      }
      try connection.write(ending.start)
      if ending.rest.isEmpty { return connection.readToEnd() }
      while true { try connection.write(ending.rest) }
    }
  }

  private func setup(_ server: RawServer, _ ending: Ending) throws -> Setup {
    let url = "http://127.0.0.1:\(server.port)"
    var setup = Setup(
      endpoint: try #require(Endpoint(url + "/orders")), payloads: Payloads(Array(#"{"item":"book"}"#.utf8)))
    if ending.rest.isEmpty { setup.timeout = .seconds(1) }
    return setup
  }

  @Test(arguments: Ending.allCases)
  func `a first run without end is not accepted`(ending: Ending) async throws {
    let server = try server(ending, firstIsGood: false)
    defer { server.close() }
    let setup = try setup(server, ending)
    let plan = Plan(setup, .init(only: ["2.6/first-run", "2.6/marker"]))
    let report = try await ConformanceRun(setup, plan).run()
    #expect(!report.isAccepted)
    #expect(report.verdict("2.6/first-run") == Verdict(.inconclusive, "delivery 1: \(ending.reason)"))
    #expect(
      report.verdict("2.6/marker")
        == Verdict(
          .inconclusive, "the request itself is not accepted (delivery 1: \(ending.reason))"))
  }

  @Test(arguments: Ending.allCases)
  func `a case whose response has no end says so`(ending: Ending) async throws {
    let server = try server(ending, firstIsGood: true)
    defer { server.close() }
    let setup = try setup(server, ending)
    let ids = ["2.1/unterminated", "5/key-letter-case"]
    let report = try await ConformanceRun(setup, Plan(setup, .init(only: ids))).run()
    for id in ids {
      #expect(report.verdict(id) == Verdict(.inconclusive, "delivery 1: \(ending.reason)"))
    }
  }
}

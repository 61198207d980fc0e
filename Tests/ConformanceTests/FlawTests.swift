import Testing

@testable import Conformance

/// Whole checks of servers inside the tests: one without a flaw, and one with each.
struct FlawTests {
  private static let bookOrder = Array(#"{"item":"book-17","amount":1999}"#.utf8)
  private static let slowOrder = Array(#"{"item":"slow","amount":1999}"#.utf8)

  private func setup(_ server: PlantedServer) throws -> Setup {
    let url = "http://127.0.0.1:\(server.port)"
    var setup = Setup(
      endpoint: try #require(Endpoint(url + "/orders")),
      payloads: Payloads(Self.bookOrder, slow: Self.slowOrder))
    setup.payloads.failing = Array(#"{"item":"fail"}"#.utf8)
    setup.headers = [HeaderLine(name: "Authorization", value: "Bearer alice")]
    setup.otherCaller = HeaderLine(name: "Authorization", value: "Bearer bob")
    setup.oracle = .count(try #require(Endpoint(url + "/executed")), pointer: "/executed")
    return setup
  }

  @Test(arguments: [false, true])
  func `a server without a flaw passes everything, even if all its results are alike`(
    areResultsAlike: Bool
  ) async throws {
    let server = try PlantedServer(areResultsAlike: areResultsAlike)
    defer { server.close() }
    let setup = try setup(server)
    let report = try await ConformanceRun(setup, Plan(setup)).run()
    let doubtful = report.results.filter { [.fail, .warn, .inconclusive].contains($0.verdict.kind) }
    #expect(doubtful.map { "\($0.examined.id): \($0.verdict)" } == [])
    let skipped = report.results.filter { $0.verdict.kind == .skip }.map(\.examined.id)
    #expect(skipped == ["2.3/after-expiry", "2.4/multipart-boundary", "beyond/thousand-keys"])
    #expect(!report.hasFailed)
    for flaw in Flaw.allCases where flaw != .forgetsTheOldest {
      #expect(report.verdict(flaw.found.id)?.kind == .pass, "\(flaw)")
    }
  }

  @Test(arguments: Flaw.allCases)
  func `each flaw is found by its case`(flaw: Flaw) async throws {
    let server = try PlantedServer(flaw)
    defer { server.close() }
    let setup = try setup(server)
    let report = try await ConformanceRun(setup, Plan(setup, .init(only: [flaw.found.id]))).run()
    #expect(report.verdict(flaw.found.id)?.kind == flaw.found.kind, "\(report.text(.text))")
    #expect(report.hasFailed == (flaw.found.kind == .fail))
  }

  @Test(arguments: [409, 423, 425, 429, 500, 503])
  func `a run that outlasts its client is charged to its own case alone`(status: Int) async throws {
    let server = try PlantedServer(statusInFlight: status, runTime: .milliseconds(700))
    defer { server.close() }
    let setup = try setup(server)
    let runs = [
      "2.6/hang-up-after-sending", "2.6/hang-up-while-waiting", "2.6/hang-up-during-response",
      "5/key-endings",
    ]
    let plan = Plan(setup, .init(only: ["2.6/concurrent-2"] + runs))
    let report = try await ConformanceRun(setup, plan).run()
    for id in runs { #expect(report.verdict(id)?.kind == .pass, "\(report.text(.text))") }
    // Nothing is repeated there, so that the limit of the rate is part of its evidence.
    let expected: Verdict.Kind = status == 429 ? .inconclusive : .pass
    #expect(report.verdict("2.6/concurrent-2")?.kind == expected)
    #expect(server.executed == 7)
  }

  @Test func `an oracle that lags is awaited`() async throws {
    let server = try PlantedServer(oracleLag: .milliseconds(400))
    defer { server.close() }
    let setup = try setup(server)
    let ids = [
      "2.2/other-payload-not-run", "2.2/other-key-runs", "2.6/first-run-runs-once", "2.6/retry-runs-once",
    ]
    let report = try await ConformanceRun(setup, Plan(setup, .init(only: ids))).run()
    for id in ids { #expect(report.verdict(id)?.kind == .pass, "\(report.text(.text))") }
  }

  @Test func `a case of a thousand requests runs if it is named`() async throws {
    let server = try PlantedServer()
    defer { server.close() }
    let setup = try setup(server)
    let plan = Plan(setup, .init(only: ["beyond/thousand-keys"]))
    #expect(plan.requests == 1003)
    let report = try await ConformanceRun(setup, plan).run()
    #expect(report.verdict("beyond/thousand-keys") == Verdict(.pass, "201"))
    #expect(server.executed == 1002)
  }

  @Test func `multipart with another boundary is the same payload`() async throws {
    let server = try PlantedServer()
    defer { server.close() }
    var setup = try setup(server)
    let body = "--B\r\nContent-Disposition: form-data; name=\"item\"\r\n\r\nbook\r\n--B--\r\n"
    setup.payloads = Payloads(Array(body.utf8), mediaType: "multipart/form-data; boundary=\"B\"")
    let report = try await ConformanceRun(setup, Plan(setup, .init(only: ["2.4/multipart-boundary"]))).run()
    // This server compares bytes.
    #expect(report.verdict("2.4/multipart-boundary") == Verdict(.info, "distinguished: refused with 422"))
  }

  @Test func `a server that takes bare keys alone is examined with bare keys`() async throws {
    let server = try PlantedServer(.refusesQuotedKeys)
    defer { server.close() }
    let setup = try setup(server)
    let report = try await ConformanceRun(setup, Plan(setup, .init(only: ["2.1/bare", "2.6"]))).run()
    #expect(report.keyStyle == .bare)
    #expect(report.verdict("2.6/retry-runs-once")?.kind == .pass)
    #expect(report.verdict("2.1/bare") == Verdict(.info, "taken as a key"))
  }

  @Test func `an announcement counts what is sent`() async throws {
    let server = try PlantedServer()
    defer { server.close() }
    let setup = try setup(server)
    let plan = Plan(setup, .init(only: ["2.2", "2.6/concurrent-8"]))
    let report = try await ConformanceRun(setup, plan).run()
    var scripts: Set<Script> = [.firstRun]
    var sent = 1
    for result in report.results where scripts.insert(result.examined.script).inserted {
      sent += result.evidence?.exchanges.count ?? 0
    }
    #expect(plan.requests == sent)
    #expect(server.executed <= plan.creating)
  }

  @Test func `a request that is not accepted is no evidence of anything`() async throws {
    let server = try PlantedServer()
    defer { server.close() }
    var setup = try setup(server)
    setup.headers = []
    setup.otherCaller = nil
    let report = try await ConformanceRun(setup, Plan(setup)).run()
    #expect(!report.isAccepted && report.hasFailed)
    #expect(report.count(.pass) == 0 && report.count(.fail) == 0)
    #expect(report.verdict("2.6/retry-same-result")?.kind == .inconclusive)
    #expect(server.executed == 0)
  }

  @Test func `an endpoint on which nobody listens is not reached`() async throws {
    let server = try PlantedServer()
    let setup = try setup(server)
    server.close()
    await #expect(throws: NotReached.self) { try await ConformanceRun(setup, Plan(setup)).run() }
  }
}

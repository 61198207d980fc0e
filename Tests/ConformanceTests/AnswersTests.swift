import Testing

@testable import Conformance

/// The three lines for a reader who has five seconds.
struct AnswersTests {
  private static let order = Array(#"{"item":"book-17","amount":1999}"#.utf8)
  private static let slow = Array(#"{"item":"slow","amount":1999}"#.utf8)

  private func answers(
    of server: PlantedServer, only: [String], _ change: (inout Setup) -> Void = { _ in }
  ) async throws -> Answers {
    let url = "http://127.0.0.1:\(server.port)"
    var setup = Setup(
      endpoint: try #require(Endpoint(url + "/orders")), payloads: Payloads(Self.order, slow: Self.slow))
    setup.headers = [HeaderLine(name: "Authorization", value: "Bearer alice")]
    setup.otherCaller = HeaderLine(name: "Authorization", value: "Bearer bob")
    setup.oracle = .count(try #require(Endpoint(url + "/executed")), pointer: "/executed")
    change(&setup)
    return Answers(try await ConformanceRun(setup, Plan(setup, .init(only: only))).run())
  }

  @Test func `a good API gets two noes, and nothing is missing`() async throws {
    let server = try PlantedServer()
    defer { server.close() }
    let answers = try await answers(
      of: server, only: ["2.6/retry-runs-once", "2.6/concurrent-8", "5/other-caller-sees-nothing"])
    #expect(
      answers.lines == [
        "Is anyone charged twice?             no: each ran once in 2 cases",
        "Does anyone see another's response?  no: no response of the first caller in 1 case",
        "What is missing?                     nothing that was examined",
      ])
  }

  @Test func `an API that ignores keys charges twice`() async throws {
    let server = try PlantedServer(.ignoresKeys)
    defer { server.close() }
    let seen = try await answers(of: server, only: ["2.6/retry-runs-once", "2.6/concurrent-2"])
    #expect(
      seen.chargedTwice.text
        == "yes: run 3 times instead of once (2.6/retry-runs-once, and 1 case more)")
    #expect(seen.seesAnother == .init(kind: .unknown, reason: "no case about it was examined"))
    #expect(seen.missing == "the API violates 2 MUST")
    // Without an oracle there is no proof, and no acquittal either.
    let guessed = try await answers(of: server, only: ["2.6"]) { $0.oracle = nil }
    #expect(guessed.chargedTwice.kind == .unknown)
    #expect(guessed.chargedTwice.reason.hasPrefix("probably"), "\(guessed.chargedTwice)")
    #expect(guessed.missing.contains("the check lacks --count-url, --failing-request"), "\(guessed.missing)")
  }

  @Test func `an API whose callers share their keys shows one the response of another`() async throws {
    let server = try PlantedServer(.sharesKeysAmongCallers)
    defer { server.close() }
    let answers = try await answers(of: server, only: ["5/other-caller-sees-nothing"])
    #expect(
      answers.seesAnother.text
        == "yes: another caller got the first one's response (5/other-caller-sees-nothing)")
  }

  @Test func `a key that a refusal betrays shows no response`() async throws {
    let server = try PlantedServer(.comparesPayloadsAmongCallers)
    defer { server.close() }
    let answers = try await answers(of: server, only: ["5/other-caller-learns-nothing"])
    #expect(answers.seesAnother.kind == .no)
    #expect(answers.missing == "the API violates 1 MUST")
  }

  @Test func `a case for which an option lacks leaves the answer open`() async throws {
    let server = try PlantedServer()
    defer { server.close() }
    let answers = try await answers(
      of: server, only: ["2.6/retry-runs-once", "2.6/in-flight-runs-once", "5/other-caller-sees-nothing"]
    ) {
      $0.payloads.slow = nil
      $0.otherCaller = nil
    }
    #expect(
      answers.chargedTwice.text
        == "unknown: each ran once in 1 case, but 2.6/in-flight-runs-once: needs --slow-request")
    #expect(answers.seesAnother.text == "unknown: 5/other-caller-sees-nothing: needs --other-caller")
    #expect(answers.missing == "the check lacks --other-caller, --slow-request")
  }

  @Test func `the answers show no secret and no control character`() throws {
    let endpoint = try #require(Endpoint("http://127.0.0.1/"))
    var setup = Setup(endpoint: endpoint, payloads: Payloads(Self.order))
    setup.headers = [HeaderLine(name: "Authorization", value: "Bearer 471108")]
    let examined = try #require(Catalogue.cases.first { $0.id == "5/other-caller-sees-nothing" })
    let verdict = Verdict(.fail, "471108\u{1B}[31m")
    let report = Report(setup: setup, keyStyle: .bare, results: [CaseResult(examined, verdict)])
    #expect(report.answers.count == 3)
    #expect(report.answers[1].hasSuffix("yes: [redacted][31m (5/other-caller-sees-nothing)"))
    #expect(report.text(.text).contains(report.answers.joined(separator: "\n")))
  }
}

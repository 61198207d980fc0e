import Testing

@testable import Conformance

/// Whole checks of servers whose responses prove less, or show less, than a strict server's.
struct ProofTests {
  private func setup(_ server: PlantedServer) throws -> Setup {
    let url = "http://127.0.0.1:\(server.port)"
    var setup = Setup(
      endpoint: try #require(Endpoint(url + "/orders")),
      payloads: Payloads(
        Array(#"{"item":"book-17","amount":1999}"#.utf8), slow: Array(#"{"item":"slow","amount":1999}"#.utf8)
      ))
    setup.payloads.failing = Array(#"{"item":"fail"}"#.utf8)
    setup.headers = [HeaderLine(name: "Authorization", value: "Bearer alice")]
    setup.otherCaller = HeaderLine(name: "Authorization", value: "Bearer bob")
    setup.oracle = .count(try #require(Endpoint(url + "/executed")), pointer: "/executed")
    return setup
  }

  /// The report on a server, with the setup changed.
  private func report(
    _ server: PlantedServer, only: [String] = [], _ change: (inout Setup) -> Void = { _ in }
  ) async throws -> Report {
    var setup = try setup(server)
    change(&setup)
    return try await ConformanceRun(setup, Plan(setup, .init(only: only))).run()
  }

  /// The cases that equal results pass, if each key has a result of its own.
  private static let restingOnEqualResults = [
    "2.1/parameters", "2.1/spaces-around", "2.1/length-255", "2.2/other-method", "2.2/trailing-slash",
    "2.4/white-space", "2.4/member-order", "2.4/media-type-parameters", "2.4/query", "2.4/changing-headers",
    "2.4/chunked", "2.6/retry-same-result", "2.6/retry-same-fields", "2.6/marker", "2.6/concurrent-results",
    "2.6/application-error", "2.7/reuse-first-remains", "5/key-with-braces", "5/keys-stay-apart",
    "5/other-caller-sees-nothing", "5/other-caller-learns-nothing", "beyond/expect-continue",
    "beyond/empty-body",
  ]

  @Test func `equal results of an API that ignores keys pass nothing without an oracle`() async throws {
    let server = try PlantedServer(.ignoresKeys, areResultsAlike: true)
    defer { server.close() }
    let report = try await report(server) { $0.oracle = nil }
    for id in Self.restingOnEqualResults {
      #expect(report.verdict(id)?.kind == .inconclusive, "\(id): \(String(describing: report.verdict(id)))")
    }
    #expect(
      report.verdict("2.6/retry-same-result")?.reason
        == "another key has the same result: only an oracle of executions can tell")
    #expect(report.verdict("2.2/other-payload-refused") == Verdict(.fail, "accepted (201)"))
    #expect(!report.results.contains { $0.verdict.reason.contains("taken as a key") })
    let text = report.text(.text)
    #expect(text.contains("taken or ignored: only an oracle of executions can tell"), "\(text)")
    for claim in ["Semel behaves alike", "fingerprint:", "shared: true", "duplicates:"] {
      #expect(!text.contains(claim), "\(claim) in \(text)")
    }
  }

  @Test func `one case alone is enough to see that results are alike`() async throws {
    let server = try PlantedServer(.ignoresKeys, areResultsAlike: true)
    defer { server.close() }
    for id in ["2.6/retry-same-result", "2.1/parameters"] {
      let report = try await report(server, only: [id]) { $0.oracle = nil }
      #expect(report.verdict(id)?.kind == .inconclusive, "\(id)")
    }
  }

  @Test func `an id that other keys get, too, counts no executions`() async throws {
    let server = try PlantedServer(.ignoresKeys, areResultsAlike: true)
    defer { server.close() }
    let ids = ["2.6/retry-runs-once", "5/key-endings"]
    let report = try await report(server, only: ids) { $0.oracle = .responses(id: "/state") }
    #expect(
      report.verdict("2.6/retry-runs-once")
        == Verdict(.inconclusive, "the oracle of executions: two keys got the same id"))
    #expect(report.verdict("5/key-endings")?.kind == .inconclusive)
  }

  @Test func `results that differ from key to key are proof enough`() async throws {
    let server = try PlantedServer()
    defer { server.close() }
    let ids = ["2.1/parameters", "2.4/chunked", "2.6/retry-same-result"]
    let report = try await report(server, only: ids) { $0.oracle = nil }
    for id in ids { #expect(report.verdict(id)?.kind == .pass, "\(report.text(.text))") }
  }

  @Test func `equal errors of two keys prove nothing without an oracle`() async throws {
    let server = try PlantedServer()
    defer { server.close() }
    let ids = ["2.6/application-error"]
    let alone = try await report(server, only: ids) { $0.oracle = nil }
    #expect(
      alone.verdict(ids[0])
        == Verdict(
          .inconclusive,
          "another key has the same error: only an oracle that counts failed runs can tell"))
    #expect(try await report(server, only: ids).verdict(ids[0]) == Verdict(.pass, "500"))
  }

  @Test(arguments: [Flaw.changesReplays, .replaysWithOtherStatus])
  func `a replay that differs violates no MUST where the oracle shows one execution`(
    flaw: Flaw
  ) async throws {
    let server = try PlantedServer(flaw)
    defer { server.close() }
    let report = try await report(server)
    #expect(!report.hasFailed, "\(report.text(.text))")
    for id in ["2.4/media-type-parameters", "2.4/query"] {
      #expect(report.verdict(id) == Verdict(.info, "the same payload, another response"))
    }
    for id in ["2.4/changing-headers", "2.4/chunked", "beyond/expect-continue"] {
      #expect(report.verdict(id) == Verdict(.info, "the same request, another response"), "\(id)")
    }
    #expect(report.verdict("2.1/parameters") == Verdict(.info, "taken as a key, with another response"))
    let warned = Set(report.results.filter { $0.verdict.kind == .warn }.map(\.examined.id))
    #expect(warned.contains("2.6/retry-same-result"))
    #expect(
      warned.isSubset(of: [
        "2.6/retry-same-result", "2.6/concurrent-results", "2.6/application-error",
        "2.7/reuse-first-remains",
      ]), "\(warned)")
  }

  @Test func `a duplicate that runs in flight is not said to wait`() async throws {
    let server = try PlantedServer(.runsDuplicatesInFlight, areResultsAlike: true)
    defer { server.close() }
    let report = try await report(server, only: ["2.6/in-flight-runs-once", "2.6/in-flight-conflict"])
    #expect(
      report.verdict("2.6/in-flight-conflict") == Verdict(.fail, "run twice instead of once"))
    let text = report.text(.text)
    #expect(text.contains("in flight  runs a second time"), "\(text)")
    #expect(!text.contains("waits") && !text.contains("duplicates:"), "\(text)")
  }

  @Test func `a duplicate that waits is said to wait`() async throws {
    let server = try PlantedServer(.waitsInFlight)
    defer { server.close() }
    let text = try await report(server, only: ["2.6/in-flight-conflict"]).text(.text)
    #expect(text.contains("in flight  waits for the first delivery's result"), "\(text)")
    #expect(text.contains("duplicates: wait"), "\(text)")
  }

  @Test func `an empty key that was used before is no key that was ignored`() async throws {
    let server = try PlantedServer(.takesEmptyKeys)
    defer { server.close() }
    let report = try await report(server, only: ["2.1/empty-string", "2.1/empty-value"])
    #expect(report.verdict("2.1/empty-string") == Verdict(.info, "taken as a key"))
    #expect(report.verdict("2.1/empty-value") == Verdict(.info, "taken as a key that was used before"))
  }
}

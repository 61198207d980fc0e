import Foundation
import TestSupport
import Testing

/// `semel conformance` on Semel, on a backend without it, and on the command line.
struct ConformanceCommandTests {
  private struct Outcome {
    let exit: ManagedProcess.Exit
    let output: String
    let errors: String
    let document: Document?

    func cases(_ verdicts: String...) -> [String] {
      (document?.cases ?? []).filter { verdicts.contains($0.verdict) }.map { "\($0.id): \($0.reason)" }
    }

    func verdict(_ id: String) -> String? { document?.cases.first { $0.id == id }?.verdict }
  }

  private struct Document: Decodable {
    struct Case: Decodable {
      let id: String
      let verdict: String
      let reason: String
    }

    let cases: [Case]
    let behaviour: [String: String]
    let semel_configuration: String
    let alike_configuration: String?
  }

  private func conformance(_ url: String, _ more: [String]) async throws -> Outcome {
    let directory = TemporaryDirectory()
    for (name, text) in [
      ("order", #"{"item":"book","amount":1999}"#), ("slow", #"{"item":"slow","amount":1}"#),
    ] {
      try text.write(toFile: directory.file("\(name).json"), atomically: true, encoding: .utf8)
    }
    let process = try ManagedProcess(
      [
        SemelProcess.binary, "conformance", url, "--request", directory.file("order.json"),
      ] + more.map { $0 == "SLOW" ? directory.file("slow.json") : $0 })
    let exit = try await process.exit(within: .seconds(150))
    let document = try? JSONDecoder().decode(Document.self, from: Data(process.output.utf8))
    return Outcome(exit: exit, output: process.output, errors: process.errors, document: document)
  }

  private func conformance(_ rig: Rig, _ more: [String]) async throws -> Outcome {
    try await conformance(at: rig.semel.ports.proxy, before: rig.backend, more)
  }

  /// A check of the endpoint at a port, by two callers, with the backend's own count as the oracle.
  private func conformance(
    at port: Int, before backend: OrdersBackend, _ more: [String]
  ) async throws -> Outcome {
    backend.on("/v1/orders") { request in
      Reply(
        body: #"{"id":"order-\#(request.number)"}"#,
        delay: request.text.contains("slow") ? .seconds(5) : .zero)
    }
    backend.on("/executed") { [weak backend] _ in
      Reply(200, body: "\(backend?.requests.count { $0.method == "POST" } ?? 0)")
    }
    return try await conformance(
      "http://127.0.0.1:\(port)/v1/orders",
      [
        "--header", "Authorization: Bearer alice", "--other-caller", "Authorization: Bearer bob",
        "--count-url", "http://127.0.0.1:\(backend.port)/executed", "--count", "", "--slow-request", "SLOW",
        "--format", "json",
      ] + more)
  }

  @Test(arguments: StoreKind.allCases)
  func `Semel passes to the letter where its route is set by it`(store: StoreKind) async throws {
    var configuration = Configuration(route: ["mismatch_status": "422", "duplicates": "reject"])
    configuration.store = store
    try await Rig.run(configuration, within: .seconds(160)) { rig in
      let outcome = try await self.conformance(rig, [])
      #expect(outcome.exit == .code(0), "\(outcome.errors)")
      // The one deviation: Semel reads the key before the caller, and looks neither up before both are right.
      #expect(
        outcome.cases("fail", "warn") == [
          "2.7/unauthenticated-first: a malformed key gets 400 instead of 401"
        ])
      // This backend takes JSON that breaks off, and so has no 4xx of its own.
      #expect(outcome.cases("inconclusive").allSatisfy { $0.hasPrefix("2.6/application-4xx") })
      #expect(outcome.verdict("2.6/concurrent-32") == "pass")
      #expect(outcome.verdict("5/other-caller-runs") == "pass")
      #expect(outcome.document?.behaviour["in flight"] == "refused with 409")
    }
  }

  @Test func `Semel's defaults deviate in two things, which its profile names`() async throws {
    try await Rig.run(within: .seconds(160)) { rig in
      let only = ["--only", "2.6/in-flight-conflict,2.7/reuse-status,2.6/in-flight-runs-once"]
      let strict = try await self.conformance(rig, only)
      #expect(strict.exit == .code(1))
      #expect(strict.cases("fail") == ["2.6/in-flight-conflict: waited for the first delivery's result"])
      #expect(strict.cases("warn") == ["2.7/reuse-status: refused with 409 instead of 422"])
      let own = try await self.conformance(rig, only + ["--profile", "semel"])
      #expect(own.exit == .code(0) && own.cases("fail", "warn") == [], "\(own.output)")
    }
  }

  @Test func `progress is shown on a terminal, and nowhere else`() async throws {
    try await Rig.run { rig in
      let directory = TemporaryDirectory()
      try "{}".write(toFile: directory.file("order.json"), atomically: true, encoding: .utf8)
      let command = [
        SemelProcess.binary, "conformance", "http://127.0.0.1:\(rig.semel.ports.proxy)/v1/orders",
        "--request", directory.file("order.json"), "--header", "Authorization: Bearer alice",
        "--only", "2.6/retry-same-result",
      ]
      let shown = try Python.startOnTerminal(command)
      let exit = try await shown.exit(within: .seconds(100))
      #expect(
        shown.output.contains(" scripts have ended …\r\u{1B}[K"), "\(exit) \(shown.output)")
      let piped = try ManagedProcess(command)
      #expect(try await piped.exit(within: .seconds(100)) == exit)
      #expect(!(piped.output + piped.errors).contains("\u{1B}"), "\(piped.errors)")
      withExtendedLifetime(directory) {}
    }
  }

  @Test func `the configuration at the end is a good one`() async throws {
    try await Rig.run { rig in
      let outcome = try await self.conformance(rig, ["--only", "2.7/reuse-status,2.7/missing-400"])
      let directory = TemporaryDirectory()
      let text = try #require(outcome.document?.semel_configuration)
      try text.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
      let check = try ManagedProcess([SemelProcess.binary, "check", directory.file("semel.yaml")])
      #expect(try await check.exit() == .code(0), "\(text)\(check.output)\(check.errors)")
    }
  }

  @Test func `the configuration is a good one for an API that ignores keys, and for one that shares them`()
    async throws
  {
    try await Rig.run(Configuration(route: ["caller": "{shared: true}"])) { rig in
      let only = [
        "--only",
        "2.6/retry-runs-once,2.7/reuse-status,2.7/missing-400,5/other-caller-runs,5/other-caller-sees-nothing",
      ]
      for (port, isShared) in [(rig.backend.port, false), (rig.semel.ports.proxy, true)] {
        let outcome = try await self.conformance(at: port, before: rig.backend, only)
        #expect(outcome.exit == .code(1), "\(outcome.errors)")
        let keys = try #require(outcome.document?.behaviour["keys"])
        #expect((keys == "ignored: each delivery with the same key runs") != isShared, "\(keys)")
        let recommended = try #require(outcome.document?.semel_configuration)
        #expect(!recommended.contains("shared: true"), "\(recommended)")
        let alike = outcome.document?.alike_configuration
        #expect(alike?.contains("caller: {shared: true}") == (isShared ? true : nil), "\(alike ?? "")")
        let answer = isShared ? "another's response?  yes" : "charged twice?             yes"
        #expect(outcome.errors.contains(answer), "\(outcome.errors)")
        for text in [recommended, alike].compactMap(\.self) {
          // Another payload has run under the same key, or was refused.
          #expect(!text.contains("fingerprint:"), "\(text)")
          let directory = TemporaryDirectory()
          try text.write(toFile: directory.file("semel.yaml"), atomically: true, encoding: .utf8)
          let check = try ManagedProcess([SemelProcess.binary, "check", directory.file("semel.yaml")])
          #expect(try await check.exit() == .code(0), "\(text)\(check.errors)")
          #expect(check.output.contains("good: 1 route, 1 upstream"), "\(check.output)")
        }
      }
    }
  }

  @Test func `the demo's backend without Semel fails`() async throws {
    try await Rig.withSlots {
      let port = FreePort.find()
      let demo = try ManagedProcess([
        SemelProcess.binary, "demo", "--only-backend", "--backend-port", "\(port)",
      ])
      let url = "http://127.0.0.1:\(port)/v1/orders"
      var outcome: Outcome
      let deadline = ContinuousClock.now + .seconds(30)
      repeat {
        outcome = try await conformance(
          url,
          [
            "--count-url", url, "--count", "/executed", "--only", "2.6/retry-runs-once,2.7/missing-400",
          ])
      } while outcome.exit == .code(3) && ContinuousClock.now < deadline
      demo.signal(2)
      #expect(outcome.exit == .code(1))
      #expect(
        outcome.output.contains("FAIL 2.6/retry-runs-once: run 3 times instead of once"), "\(outcome.output)")
      #expect(outcome.output.contains("WARN 2.7/missing-400: accepted (201)"))
      #expect(outcome.output.contains("curl -i '\(url)'"))
      #expect(outcome.errors.contains("up to 5 of them may create something"), "\(outcome.errors)")
      try await demo.exit()
    }
  }

  @Test func `nginx with Lua and Redis compares neither payloads nor callers`() async throws {
    try await Rig.withSlots {
      let backend = OrdersBackend()
      try await backend.start()
      let peer = try await LuaPeer(before: backend.port)
      let outcome = try await self.conformance(at: peer.port, before: backend, [])
      try await backend.stop()
      #expect(outcome.exit == .code(1), "\(outcome.errors)")
      for id in [
        "2.2/other-payload-refused", "2.7/reuse-refused-again", "5/other-caller-runs",
        "5/other-caller-sees-nothing", "5/other-caller-learns-nothing",
      ] {
        #expect(outcome.verdict(id) == "fail", "\(id)")
      }
      #expect(outcome.verdict("2.6/retry-runs-once") == "pass")
      #expect(outcome.verdict("2.1/repeated") == "warn")
    }
  }

  @Test func `an endpoint with TLS is verified`() async throws {
    try await SecureRig.run { secure in
      let url = "https://localhost:\(secure.port)/v1/orders"
      let arguments = ["--header", "Authorization: Bearer alice", "--only", "2.6/retry-same-result"]
      let trusted = try await self.conformance(url, arguments + ["--ca", secure.certificates.authority])
      #expect(trusted.exit == .code(0), "\(trusted.output)\(trusted.errors)")
      let unknown = try await self.conformance(url, arguments)
      #expect(unknown.exit == .code(3) && unknown.errors.contains("not reached"), "\(unknown.errors)")
      #expect(secure.rig.backend.requests.count == 2)
    }
  }

  @Test func `a report goes to its file, without the secret`() async throws {
    try await Rig.run { rig in
      let directory = TemporaryDirectory()
      for format in ["text", "tap", "junit", "json"] {
        let file = directory.file(format)
        let outcome = try await self.conformance(
          rig, ["--only", "2.6/first-run", "--format", format, "--output", file])
        #expect(outcome.exit == .code(0) && outcome.output.isEmpty, "\(outcome.output)\(outcome.errors)")
        let report = try String(contentsOfFile: file, encoding: .utf8)
        #expect(report.contains("first-run") && !report.contains("alice"), "\(report)")
      }
    }
  }

  @Test func `nothing is sent where the report cannot be written`() async throws {
    try await Rig.run { rig in
      let outcome = try await self.conformance(rig, ["--output", "/nowhere/report"])
      #expect(outcome.exit == .code(1), "\(outcome.errors)")
      #expect(outcome.errors.contains("semel: /nowhere/report cannot be written: No such file or directory"))
      #expect(rig.backend.requests.isEmpty)
    }
  }

  @Test(arguments: [
    (["--count-url", "/executed", "--count", "/none"], "--count-url, --count", "no whole number at /none"),
    (["--count-url", "/broken", "--count", ""], "--count-url, --count", "status 500"),
    (["--list-url", "/text", "--id", "/id"], "--list-url, --id", "no JSON: at byte 0 it reads <p>"),
  ])
  func `nothing is created where the oracle cannot be read`(
    arguments: [String], options: String, reason: String
  ) async throws {
    let backend = OrdersBackend()
    try await backend.start()
    backend.on("/executed") { _ in Reply(200, body: #"{"executed":0}"#) }
    backend.on("/broken") { _ in Reply(500, body: "{}") }
    backend.on("/text") { _ in Reply(200, body: "<p>") }
    let url = "http://127.0.0.1:\(backend.port)"
    let more = arguments.enumerated().map { $0.offset == 1 ? url + $0.element : $0.element }
    let outcome = try await conformance(url + "/v1/orders", more)
    #expect(outcome.exit == .code(2) && outcome.output.isEmpty, "\(outcome.output)\(outcome.errors)")
    let text = "Error: \(options): the executions cannot be read (\(reason)); nothing was created"
    #expect(outcome.errors.contains(text), "\(outcome.errors)")
    #expect(backend.requests.map(\.method) == ["GET"])
    try await backend.stop()
  }

  @Test func `nothing is sent without consent`() async throws {
    let elsewhere = "https://api.example.com/v1/orders"
    let refused = try await conformance(elsewhere, [])
    #expect(refused.exit == .code(2))
    #expect(
      refused.errors.contains("may create something") && refused.errors.contains("--yes"), "\(refused.errors)"
    )
    let backend = OrdersBackend()
    try await backend.start()
    let url = "http://127.0.0.1:\(backend.port)/v1/orders"
    let preview = try await conformance(url, ["--dry-run"])
    #expect(preview.exit == .code(0) && preview.output.contains("2.6/retry-same-result  SHOULD"))
    #expect(preview.output.contains("requests to \(url)"))
    #expect(backend.log.value.connections == 0)
    try await backend.stop()
  }

  @Test func `an endpoint on which nobody listens ends with 3`() async throws {
    let outcome = try await conformance("http://127.0.0.1:\(FreePort.find())/", [])
    #expect(outcome.exit == .code(3) && outcome.errors.contains("Connection refused"), "\(outcome.errors)")
  }

  @Test(arguments: [
    ["--only", "9.9"], ["--profile", "none"], ["--header", "nothing"], ["--ttl", "soon"],
    ["--vary", "/none"],
    ["--count-url", "http://127.0.0.1/"], ["--list-url", "http://127.0.0.1/"], ["--level", "shall"],
    ["--format", "yaml"], ["--slow-request", "/none"], ["--method", "PO ST"],
  ])
  func `wrong usage ends with 2`(arguments: [String]) async throws {
    let outcome = try await conformance("http://127.0.0.1:\(FreePort.find())/", arguments)
    #expect(outcome.exit == .code(2), "\(outcome.errors)")
  }
}

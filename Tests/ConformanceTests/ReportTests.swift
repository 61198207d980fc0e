import Foundation
import Testing

@testable import Conformance

struct ReportTests {
  private static let secret = "s3cr<e>t&\"4711"

  private func report() -> Report {
    var setup = Setup(
      endpoint: Endpoint("http://127.0.0.1:9000/orders?api_key=in-the-url")!,
      payloads: Payloads(Array(#"{"item":"it's"}"#.utf8)))
    setup.headers = [HeaderLine(name: "Authorization", value: "Bearer \(Self.secret)")]
    let request = Composer(setup, style: .quoted).request(
      Delivery(.values(["\"{a}\n\0\""])), keys: ["a": "key-1"])
    let response = RawResponse(
      status: 201, fields: [HeaderLine(name: "Set-Cookie", value: "id=hidden")],
      body: Array("you are \(Self.secret)\u{1B}[31m\u{8}".utf8))
    let evidence = Evidence(exchanges: [Exchange(request: request, outcome: .response(response))])
    let verdicts = [
      Verdict(.pass), Verdict(.fail, "run twice # instead of <once>"), Verdict(.warn, "so"),
      Verdict(.info, "waits"),
      Verdict(.skip, "needs --ttl"), Verdict(.inconclusive, "no oracle"),
    ]
    let results = zip(Catalogue.cases, verdicts).map { CaseResult($0, $1, evidence) }
    return Report(setup: setup, keyStyle: .quoted, results: results)
  }

  @Test(arguments: Report.Format.allCases)
  func `no format shows a secret`(format: Report.Format) {
    let text = report().text(format)
    for secret in [Self.secret, "4711", "in-the-url", "hidden"] { #expect(!text.contains(secret), "\(text)") }
    #expect(text.contains("[redacted]"))
  }

  @Test func `text has a table, failures as curl lines and a summary`() {
    let text = report().text(.text)
    #expect(text.contains("2.1 Syntax\n  pass         MUST   quoted"))
    #expect(
      text.contains("FAIL 2.1/bare: run twice # instead of <once>\n  curl -i 'http://127.0.0.1:9000/orders"))
    #expect(text.contains(#"-H $'Idempotency-Key: "key-1\x0a\x00"'"#))
    #expect(text.contains(#"--data-binary '{"item":"it'\''s"}'"#))
    #expect(text.contains("1 pass, 1 fail, 1 warn, 1 info, 1 skip, 1 inconclusive"))
    #expect(text.contains("Semel recommends for the API\n  listen:"))
    #expect(!text.unicodeScalars.contains { $0.properties.generalCategory == .control && $0 != "\n" })
  }

  @Test func `TAP fails no run by a SHOULD, and passes nothing that was not examined`() {
    let lines = report().text(.tap).split(separator: "\n").map(String.init)
    #expect(lines.starts(with: ["TAP version 14", "1..6"]))
    let points = lines.filter { $0.hasPrefix("ok") || $0.hasPrefix("not ok") }
    #expect(points.count == 6)
    #expect(points[0].hasPrefix("ok 1 - 2.1/quoted"))
    #expect(points[1].hasPrefix("not ok 2 - ") && !points[1].contains("TODO"))
    #expect(points[2].hasPrefix("not ok 3 - ") && points[2].hasSuffix("# TODO SHOULD: so"))
    #expect(points[4].hasSuffix("# SKIP needs --ttl"))
    #expect(points[5].hasSuffix("# SKIP inconclusive: no oracle"))
    #expect(lines.count { $0 == "  ---" } == lines.count { $0 == "  ..." })
    #expect(lines.contains(#"  message: "run twice # instead of <once>""#))
  }

  @Test func `JUnit is XML that counts failures and skips`() throws {
    let text = report().text(.junit)
    #expect(text.contains(#"tests="6" failures="1""#) && text.contains(#"skipped="2""#))
    #expect(text.contains(#"<failure message="run twice # instead of &lt;once&gt;">"#))
    #expect(text.contains(#"<skipped message="inconclusive: no oracle"/>"#))
    #expect(!text.contains("\0"))
  }

  @Test func `JSON has every exchange`() throws {
    let json = try #require(JSONValue(report().text(.json).utf8))
    #expect(json.value(at: "/failed") == .bool(true))
    #expect(json.value(at: "/counts/fail") == .number("1"))
    #expect(json.value(at: "/cases/1/verdict") == .string("fail"))
    #expect(json.value(at: "/cases/1/exchanges/0/status") == .number("201"))
    #expect(json.value(at: "/cases/1/exchanges/0/method") == .string("POST"))
    #expect(json.value(at: "/semel_configuration") != nil)
    // Nothing was seen that Semel should not repeat.
    #expect(json.value(at: "/alike_configuration") == .null)
    #expect(json.value(at: "/answers/charged_twice/answer") == .string("unknown"))
  }

  @Test func `a long key is shortened`() {
    let line = CurlLine.quoted(String(repeating: "x", count: 70_000))
    #expect(line.count < 300 && line.contains("(70000 bytes)"))
  }

  @Test func `the configuration keeps to what clients know, and repeats a fault only where it is marked`() {
    var setup = Setup(
      endpoint: Endpoint("https://api.example.com/v1/orders")!,
      payloads: Payloads(Array(#"{"item":"book"}"#.utf8)))
    setup.headers = [HeaderLine(name: "X-Api-Key", value: "secret")]
    setup.ttl = .seconds(5)
    func result(_ id: String, _ verdict: Verdict, _ statuses: Int...) -> CaseResult {
      let request = RawRequest(method: "POST", target: "/", lines: [])
      let exchanges = statuses.map { Exchange(request: request, outcome: .response(RawResponse(status: $0))) }
      return CaseResult(
        Catalogue.cases.first { $0.id == id }!, verdict, Evidence(exchanges: exchanges))
    }
    let report = Report(
      setup: setup, keyStyle: .bare,
      results: [
        result("2.7/missing-400", Verdict(.info, "a request without a key runs"), 201),
        result("2.7/reuse-status", Verdict(.warn, "refused with 400"), 201, 400),
        result("2.6/in-flight-conflict", Verdict(.pass, "409"), 201, 409),
        result("2.4/white-space", Verdict(.info, "distinguished: refused with 400"), 201, 400),
        result(
          "2.6/application-4xx", Verdict(.info, "not stored: the corrected request runs"), 422, 422, 201),
        result("2.3/after-expiry", Verdict(.info, "runs again"), 201, 201),
      ])
    let recommended = Profile(report).configuration(.recommended)
    let alike = Profile(report).configuration(.alike)
    for member in [
      #"api: {url: "https://api.example.com"}"#, #"path: "/v1/orders""#, "idempotency: optional",
      "mismatch_status: 400", "duplicates: reject", "outcomes: {retry: [422]}",
      #"caller: {parts: ["header:X-Api-Key"]}"#,
    ] {
      #expect(recommended.contains(member) && alike.contains(member), "\(member) in \(recommended)\(alike)")
    }
    for fault in ["fingerprint: {body: raw}", "retention: 5s", "remember: 5s"] {
      #expect(alike.contains(fault) && !recommended.contains(fault), "\(fault) in \(recommended)\(alike)")
    }
    let lines = Profile(report).lines
    let mark = lines.firstIndex { $0.hasPrefix("NOT RECOMMENDED") } ?? 0
    #expect(lines.firstIndex { $0.contains("retention: 5s") } ?? 0 > mark && mark > 0, "\(lines)")
    #expect(Profile(report).behaviour.contains { $0.name == "keys" && $0.value == "bare only" })
  }

  /// The profile of an API that accepts another payload under a used key, by the bodies and the number of executions of
  /// three equal deliveries.
  private func profile(_ bodies: [String], executions: Int) throws -> Profile {
    var setup = Setup(
      endpoint: try #require(Endpoint("http://127.0.0.1:8080/v1/orders")),
      payloads: Payloads(Array(#"{"item":"book"}"#.utf8)))
    setup.keyHeader = "X_Request"
    let request = RawRequest(method: "POST", target: "/", lines: [])
    let exchanges = bodies.map {
      Exchange(request: request, outcome: .response(RawResponse(status: 201, body: Array($0.utf8))))
    }
    let results = try ["2.6/retry-runs-once", "2.7/reuse-status"].map { id in
      CaseResult(
        try #require(Catalogue.cases.first { $0.id == id }), Verdict(.warn),
        Evidence(exchanges: exchanges, executions: .exactly(executions)))
    }
    return Profile(Report(setup: setup, keyStyle: .bare, results: results))
  }

  @Test func `an API that ignores keys gets the route that protects it`() throws {
    let ignoring = try profile(["1", "2", "3"], executions: 3)
    #expect(ignoring.behaviour.first { $0.name == "keys" }?.value.hasPrefix("ignored") == true)
    #expect(ignoring.lines.contains("Semel in front of the API makes keys count there, with"))
    #expect(ignoring.alikeConfiguration == nil)
    let text = ignoring.configuration(.recommended)
    #expect(!text.contains("fingerprint") && !text.contains("shared"), "\(text)")
    // Its own port is not taken, and its key's field reaches it.
    #expect(text.contains(#"listen: [{address: "127.0.0.1:8090"}]"#))
    #expect(text.contains("\nunderscores: pass\nroutes:\n"))
    // The responses alone do not tell.
    #expect(try profile(["", "", ""], executions: 3).alikeConfiguration == nil)
  }

  @Test func `an API that compares no payloads is recommended a route that does`() throws {
    let keeping = try profile(["1", "1", "1"], executions: 1)
    #expect(keeping.lines.contains("Semel recommends for the API"))
    #expect(!keeping.configuration(.recommended).contains("fingerprint"))
    #expect(try #require(keeping.alikeConfiguration).contains("fingerprint: {body: none}"))
  }

  @Test func `results that all keys share suggest neither one caller nor a fingerprint without the body`()
    throws
  {
    let endpoint = try #require(Endpoint("http://127.0.0.1/"))
    let setup = Setup(endpoint: endpoint, payloads: Payloads(Array("{}".utf8)))
    let request = RawRequest(method: "POST", target: "/", lines: [])
    let exchange = Exchange(request: request, outcome: .response(RawResponse(status: 204)))
    var evidence = Evidence(exchanges: [exchange, exchange])
    evidence.keysShareResults = true
    func profile() throws -> Profile {
      let examined = try #require(Catalogue.cases.first { $0.id == "2.7/reuse-status" })
      let result = CaseResult(examined, Verdict(.warn, "accepted (204)"), evidence)
      return Profile(Report(setup: setup, keyStyle: .quoted, results: [result]))
    }
    let unknown = try profile()
    let lines = unknown.lines.joined(separator: "\n")
    #expect(!lines.contains("fingerprint") && !lines.contains("shared"), "\(lines)")
    #expect(unknown.alikeConfiguration == nil)
    evidence.executions = .exactly(1)
    let known = try #require(try profile().alikeConfiguration)
    #expect(known.contains("fingerprint: {body: none}") && known.contains("shared: true"), "\(known)")
  }

  @Test func `a field for the next proxy is no part of the caller`() throws {
    var setup = Setup(
      endpoint: try #require(Endpoint("http://127.0.0.1/")), payloads: Payloads(Array("{}".utf8)))
    setup.headers = [HeaderLine(name: "Proxy-Authorization", value: "Basic YTpi")]
    let alone = Profile(Report(setup: setup, keyStyle: .bare, results: []))
    #expect(alone.alikeConfiguration?.contains("caller: {shared: true}") == true)
    let named = #"caller: {parts: ["header:Authorization"]} # name the field"#
    #expect(alone.configuration(.recommended).contains(named))
    setup.headers.append(HeaderLine(name: "X-Api-Key", value: "secret"))
    let both = Profile(Report(setup: setup, keyStyle: .bare, results: []))
    #expect(both.configuration(.recommended).contains(#"caller: {parts: ["header:X-Api-Key"]}"#))
    #expect(both.alikeConfiguration == nil)
  }
}

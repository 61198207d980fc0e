import Testing

@testable import Conformance

/// The options whose values no report shows, and those that know a caller.
struct SecretTests {
  private func setup(_ headers: String..., query: String = "", other: String? = nil) throws -> Setup {
    var setup = Setup(
      endpoint: try #require(Endpoint("http://127.0.0.1:9000/orders\(query)")),
      payloads: Payloads(Array(#"{"item":"book"}"#.utf8)))
    setup.headers = try headers.map { try #require(HeaderLine($0)) }
    setup.otherCaller = try other.map { try #require(HeaderLine($0)) }
    return setup
  }

  /// The report on one request whose response repeats a text.
  private func report(_ setup: Setup, echo: String = "") throws -> Report {
    let request = Composer(setup, style: .quoted).request(Delivery(), keys: ["a": "key-1"])
    let response = RawResponse(status: 201, body: Array("you sent \(echo)".utf8))
    let evidence = Evidence(exchanges: [Exchange(request: request, outcome: .response(response))])
    let examined = try #require(Catalogue.cases.first)
    return Report(
      setup: setup, keyStyle: .quoted, results: [CaseResult(examined, Verdict(.fail, "so"), evidence)])
  }

  @Test(arguments: [
    "X-Auth", "X-Authorization", "X-Auth-Key", "X-Credential", "X-Amz-Credential", "Authentication", "X-Csrf",
    "x_api_key", "Ocp-Apim-Subscription-Key", "X-Anything-Else",
  ])
  func `a field is shown without its value, unless it is known to be neutral`(name: String) throws {
    let report = try report(setup("\(name): hunter2"), echo: "hunter2")
    for format in Report.Format.allCases {
      let text = report.text(format)
      #expect(!text.contains("hunter2") && text.contains("[redacted]"), "\(text)")
    }
  }

  @Test(arguments: ["?key=hunter2", "?sig=hunter2", "?page=4&account=hunter2", "?hunter2"])
  func `a parameter is shown without its value, unless it is known to be neutral`(query: String) throws {
    let setup = try setup(query: query)
    let report = try report(setup, echo: "hunter2")
    for format in Report.Format.allCases {
      #expect(!report.text(format).contains("hunter2"), "\(report.text(format))")
    }
    #expect(!setup.redactedURL.contains("hunter2") && setup.redactedURL.contains("[redacted]"))
  }

  @Test func `neutral options are shown, and words of the report remain`() throws {
    let setup = try setup(
      "Accept: text/x-one", "Prefer: wait=5", "X-Tenant: item", "X-Short: ab", query: "?page=17&k=ab")
    let text = try report(setup).text(.text)
    for shown in ["page=17&k=[redacted]'", "Prefer: wait=5", #"{"item":"book"}"#] {
      #expect(text.contains(shown), "\(text)")
    }
    #expect(text.contains("X-Tenant: [redacted]") && text.contains("X-Short: [redacted]"), "\(text)")
  }

  @Test func `a request of nobody has no credentials, whatever their names`() throws {
    let composer = Composer(try setup("X-Auth: hunter2", "X-Csrf: abc", "X-Tenant: t"), style: .quoted)
    let lines = composer.request(Delivery().with(\.caller, .none), keys: [:]).lines
    #expect(lines.contains("X-Tenant: t"))
    #expect(!lines.contains { $0.hasPrefix("X-Auth") || $0.hasPrefix("X-Csrf") }, "\(lines)")
    #expect(try setup("X-Auth: hunter2").has(.credentials))
    #expect(try !setup("Accept: */*").has(.credentials))
  }

  @Test func `the configuration takes no field for the caller that may be one of many`() throws {
    func caller(_ setup: Setup) -> String? {
      Profile(Report(setup: setup, keyStyle: .bare, results: [])).configuration(.recommended)
        .split(separator: "\n").first { $0.contains("caller: ") }.map { $0.trimmingPrefix { $0 == " " } }
        .map(String.init)
    }
    func part(_ name: String) -> String { "caller: {parts: [\"\(name)\"]}" }
    #expect(try caller(setup("X-Auth: a")) == part("header:X-Auth"))
    #expect(
      try caller(setup("X-Csrf: a", "X-Tenant: t", "Authentication: b")) == part("header:Authentication"))
    #expect(try caller(setup("Accept: */*", "X-Tenant: t")) == part("header:X-Tenant"))
    #expect(try caller(setup("X-Auth: a", other: "X-Tenant: u")) == part("header:X-Tenant"))
    #expect(try caller(setup(query: "?page=1&api_key=abc")) == part("query:api_key"))
    // A proof of one delivery knows no caller: the reader is to choose.
    let open = part("header:Authorization") + " # name the field by which the API knows its callers"
    #expect(try caller(setup("X-Signature: abc")) == open)
    #expect(try caller(setup(query: "?sig=abc")) == open)
    #expect(try caller(setup("Accept: */*", query: "?page=1")) == open)
  }
}

import Idempotency
import Settings
import Testing

/// `outcomes` as rules and presets, and `released`.
struct OutcomeRuleSettingsTests {
  private static func member(_ pointer: String, _ wanted: OutcomeRule.Wanted) throws
    -> OutcomeRule.BodyMember
  {
    try #require(OutcomeRule.BodyMember(pointer: pointer, wanted: wanted))
  }

  private func table(_ value: String) throws -> OutcomeTable {
    try load(route("outcomes: \(value)")).routes[0].outcomes
  }

  @Test func `rules are read in their order`() throws {
    let read = try table(
      """
      [{status: [500-599, 422, 4XX], header: {Transient-Error: "true", X-Any: present}, is: retry},
        {status: 200, json: {/a/0/b: x y, /n: 12, /t: true, /z: null, "/p~1q": present}, is: deleted},
        {header: {X-Final: 1}, is: final}, {status: 409, is: unknown}]
      """)
    let first = OutcomeRule(
      statuses: [500...599, 422...422, 400...499],
      headers: [
        .init(name: "transient-error", wanted: .text("true")), .init(name: "x-any", wanted: .present),
      ], is: .retry)
    let second = OutcomeRule(
      statuses: [200...200],
      members: [
        try Self.member("/a/0/b", .text("x y")), try Self.member("/n", .text("12")),
        try Self.member("/t", .text("true")), try Self.member("/z", .text("null")),
        try Self.member("/p~1q", .present),
      ], is: .deleted)
    let third = OutcomeRule(headers: [.init(name: "x-final", wanted: .text("1"))], is: .final)
    let fourth = OutcomeRule(statuses: [409...409], is: .unknown)
    #expect(read == OutcomeTable(.standard, rules: [first, second, third, fourth]))
  }

  @Test func `presets are read, alone or before rules`() throws {
    let rule = OutcomeRule(statuses: [404...404], is: .final)
    #expect(try table("success_only") == OutcomeTable(.successOnly))
    #expect(try table("stripe") == OutcomeTable(.stripe))
    #expect(try table("default") == OutcomeTable())
    #expect(
      try table("[success_only, {status: 404, is: final}]") == OutcomeTable(.successOnly, rules: [rule]))
    #expect(try table("[stripe, {status: 404, is: final}]") == OutcomeTable(.stripe, rules: [rule]))
    #expect(try table("[default, {status: 404, is: final}]") == OutcomeTable(.standard, rules: [rule]))
  }

  @Test func `another form takes the place of what came before`() throws {
    func routes(_ defaults: String) throws -> [OutcomeTable] {
      let text = """
        defaults: {caller: {parts: [address]}, outcomes: \(defaults)}
        routes:
          - {name: a, match: {path: /a}}
          - {name: b, match: {path: /b}, outcomes: {unknown: [500]}}
          - {name: c, match: {path: /c}, outcomes: [{status: 404, is: retry}]}
          - {name: d, match: {path: /d}, outcomes: success_only}
          - {name: e, match: {path: /e}, outcomes: default}
          - {name: f, match: {path: /f}, profile: webhook}
        """
      return try load(upstream + text).routes.map(\.outcomes)
    }
    let rule = { (status: Int) in OutcomeRule(statuses: [status...status], is: .retry) }
    let webhook = OutcomeTable(retry: [.hundred(3), .hundred(4), .hundred(5)])
    let others = [
      OutcomeTable(.standard, rules: [rule(404)]), OutcomeTable(.successOnly), OutcomeTable(), webhook,
    ]
    let ruled = OutcomeTable(.standard, rules: [rule(422)])
    #expect(
      try routes("[{status: 422, is: retry}]") == [ruled, OutcomeTable(unknown: [.status(500)])] + others)
    let listed = OutcomeTable(retry: [.status(422)])
    let both = OutcomeTable(retry: [.status(422)], unknown: [.status(500)])
    #expect(try routes("{retry: [422]}") == [listed, both] + others)
  }

  @Test(arguments: [
    (
      "[{status: [500-599, 422, 4xx], header: {Transient-Error: \"true\"}, is: retry}, {json: {/a: present}, is: deleted}]",
      #"[{"status":["5xx",422,"4xx"],"header":{"transient-error":"true"},"is":"retry"},{"json":{"/a":"present"},"is":"deleted"}]"#
    ),
    ("[{status: 500-504, is: unknown}]", #"[{"status":["500-504"],"is":"unknown"}]"#),
    ("success_only", #""success_only""#), ("stripe", #""stripe""#),
    ("[stripe, {status: 404, is: final}]", #"["stripe",{"status":[404],"is":"final"}]"#),
    ("[success_only, {status: 404, is: final}]", #"["success_only",{"status":[404],"is":"final"}]"#),
    ("default", #"{"final":[],"retry":[],"unknown":[]}"#),
  ])
  func `what is read is shown so that it could be written again`(value: String, shown: String) throws {
    let settings = try load(route("outcomes: \(value)"))
    #expect(settings.shownJSON.contains(#""outcomes":\#(shown),"released":"keep""#), "\(settings.shownJSON)")
    #expect(try table(shown) == settings.routes[0].outcomes)
  }

  private static let forms =
    "lists such as {retry: [500, 5xx]}, rules such as [{status: 422, is: retry}], or default, success_only or stripe"

  @Test(arguments: [
    ("outcomes: strype", "outcomes: must be \(forms)"),
    ("outcomes: []", "outcomes: must have a rule such as {status: 422, is: retry}"),
    (
      "outcomes: [strype]",
      "outcomes[0]: must be a rule such as {status: 422, is: retry}, or default, success_only or stripe"
    ),
    (
      "outcomes: [{status: 422, is: retry}, stripe]",
      "outcomes[1]: must be a rule such as {status: 422, is: retry}; a preset stands first"
    ),
    (
      "outcomes: [{is: retry}]",
      "outcomes[0]: must have a condition, status, header or json, such as {status: 422, is: retry}"
    ),
    ("outcomes: [{status: 422}]", "outcomes[0].is: is missing: write final, retry, unknown or deleted"),
    ("outcomes: [{status: 422, is: gone}]", "outcomes[0].is: must be final, retry, unknown or deleted"),
    (
      "outcomes: [{status: 422, class: retry, is: retry}]",
      "outcomes[0].class: unknown member; allowed are status, header, json, is"
    ),
    (
      "outcomes: [{status: 199, is: retry}]",
      "outcomes[0].status: must be a status from 200 to 599, a class from 2xx to 5xx, or a range such as 500-599"
    ),
    (
      "outcomes: [{status: [599-500], is: retry}]",
      "outcomes[0].status[0]: must be a status from 200 to 599, a class from 2xx to 5xx, or a range such as 500-599"
    ),
    (
      "outcomes: [{status: [4xx-5xx], is: retry}]",
      "outcomes[0].status[0]: must be a status from 200 to 599, a class from 2xx to 5xx, or a range such as 500-599"
    ),
    (
      "outcomes: [{status: [422, 422], is: retry}]",
      "outcomes[0].status[1]: is given twice, first in line 2; take one of them out"
    ),
    (
      "outcomes: [{status: [], header: {A: b}, is: retry}]",
      "outcomes[0].status: must name a status: write one such as 422, or take the member out"
    ),
    (
      "outcomes: [{header: {}, is: retry}]",
      "outcomes[0].header: must name a field, such as {Transient-Error: \"true\"}"
    ),
    (
      "outcomes: [{header: {A: b, a: c}, is: retry}]",
      "outcomes[0].header.a: must name a header field, such as Transient-Error, and be there once"
    ),
    (
      "outcomes: [{header: {A b: c}, is: retry}]",
      "outcomes[0].header.A b: must name a header field, such as Transient-Error, and be there once"
    ),
    (
      #"outcomes: [{header: {A: " a "}, is: retry}]"#,
      #"outcomes[0].header.A: must be a field's whole value in one line, without white space around it: write "a""#
    ),
    (
      #"outcomes: [{header: {A: "a\nb"}, is: retry}]"#,
      #"outcomes[0].header.A: must be a field's whole value in one line, without white space around it: write "a b""#
    ),
    (
      #"outcomes: [{header: {A: "\ta"}, is: retry}]"#,
      #"outcomes[0].header.A: must be a field's whole value in one line, without white space around it: write "a""#
    ),
    ("outcomes: [{json: {}, is: retry}]", "outcomes[0].json: must name a member, such as {/code: not_found}"),
    (
      "outcomes: [{json: {code: a}, is: retry}]",
      "outcomes[0].json.code: must be a JSON pointer that begins with a slash, such as /code"
    ),
    (
      "outcomes: [{json: {/code: [a]}, is: retry}]",
      "outcomes[0].json./code: must be a text, a number, true, false, null or present, not a list"
    ),
    (
      "released: gone", "released: must be keep or forget"
    ),
  ])
  func `a fault is refused with the right form`(members: String, issue: String) {
    let found = issues(route(members))
    #expect(found.count == 1, "\(found)")
    #expect(found.first?.hasSuffix("routes[0].\(issue)") == true, "\(found)")
  }

  /// They are dropped from a backend's response, and stand in that of a Semel behind this one.
  @Test(arguments: [
    "Idempotency-Status", "idempotent-replayed", "Idempotency-Recorded-At", "Idempotency-Expires",
  ])
  func `a rule by a field of Semel's own is refused`(name: String) {
    for value in ["present", "executed"] {
      let found = issues(route("outcomes: [{status: 5xx, header: {\(name): \(value)}, is: unknown}]"))
      #expect(found.count == 1, "\(found)")
      let start =
        "outcomes[0].header.\(name): is a field that Semel writes itself and drops from every backend's"
      #expect(found.first?.contains(start) == true, "\(found)")
      #expect(found.first?.hasSuffix("such as json: {/code: outcome_unknown}") == true, "\(found)")
    }
  }

  @Test func `a rule by a field with which a backend steers is taken`() throws {
    for name in ["Idempotency-Outcome", "Idempotency-Retention", "Idempotency-Key"] {
      #expect(issues(route("outcomes: [{status: 5xx, header: {\(name): present}, is: unknown}]")).isEmpty)
    }
    let whole = try table(#"[{status: 500, header: {A: "a\tb é"}, is: retry}]"#)
    #expect(whole.rules?.list.first?.headers.map(\.wanted) == [.text("a\tb é")])
  }

  /// Rules of which the last is never met, and others.
  @Test(arguments: [
    ("{status: 4xx, is: retry}, {status: 422, is: final}", true),
    ("{status: 4xx, is: retry}, {status: [422, 500], is: final}", false),
    ("{status: 4xx, is: retry}, {status: 500-599, is: final}, {status: [422, 500], is: final}", true),
    ("{status: 422, header: {A: b}, is: retry}, {status: 422, is: final}", false),
    ("{status: 422, is: retry}, {status: 422, header: {A: b}, is: final}", true),
    ("{header: {A: present}, is: retry}, {status: 422, header: {a: b}, json: {/c: d}, is: final}", true),
    ("{header: {A: b}, is: retry}, {header: {A: present}, is: final}", false),
    ("{json: {/a: b}, is: retry}, {json: {/a: b, /c: d}, is: final}", true),
    ("{json: {/a: present}, is: retry}, {json: {/a: null}, is: final}", false),
    ("{json: {/a: b}, is: retry}, {json: {/a: c}, is: final}", false),
    ("{status: [2xx, 3xx, 4xx, 5xx], is: final}, {json: {/a: b}, is: retry}", true),
  ])
  func `a rule that is never met is refused`(rules: String, isRefused: Bool) {
    let found = issues(route("outcomes: [\(rules)]"))
    let reason =
      "is never met: the rule in line 2 takes its responses; write it before that one, or take it out"
    #expect(found.map { $0.hasSuffix(reason) } == (isRefused ? [true] : []), "\(found)")
  }

  @Test func `rules are bounded in number`() {
    func rules(_ count: Int) -> String {
      (0..<count).map { "{status: \(200 + $0), header: {A: b}, is: final}" }.joined(separator: ", ")
    }
    #expect(issues(route("outcomes: [\(rules(64))]")).isEmpty)
    #expect(issues(route("outcomes: [\(rules(65))]")).map { $0.contains("64 rules at most") } == [true])
  }

  @Test func `bodies are not read of responses that are passed on as they come`() {
    let reason = "combines stream: true with a rule that reads json, which no response meets"
    let rule = "[{status: 422, json: {/a: b}, is: retry}]"
    #expect(
      issues(route("stream: true, outcomes: \(rule)")).map { $0.contains("outcomes: \(reason)") } == [true])
    #expect(issues(route("stream: true, outcomes: [{status: 422, is: retry}]")).isEmpty)
    let inherited =
      upstream
      + "defaults: {caller: {parts: [address]}, outcomes: \(rule)}\nroutes: [{name: r, stream: true}]\n"
    #expect(issues(inherited).map { $0.contains("stream: \(reason)") } == [true])
  }

  @Test func `attempts that are forgotten are not counted`() throws {
    let reason = "combines max_attempts with released: forget, which forgets the attempts"
    #expect(
      issues(route("released: forget, max_attempts: 3")).map { $0.contains("released: \(reason)") } == [true])
    let inherited =
      upstream
      + "defaults: {caller: {parts: [address]}, released: forget}\nroutes: [{name: r, max_attempts: 3}]\n"
    #expect(issues(inherited).map { $0.contains("max_attempts: \(reason)") } == [true])
    #expect(try load(route("released: forget, max_attempts: 0")).routes[0].released == .forget)
  }

  @Test(arguments: [
    ("[{status: 2xx, is: retry}]", "retry (200 and others)"),
    ("[{status: 201, is: deleted}]", "deleted (201)"),
    ("[{status: 200-201, is: unknown}]", "unknown (200 and others)"), ("[{status: 202, is: unknown}]", nil),
    ("[{status: 200, is: final}, {status: 2xx, is: retry}]", "retry (201 and others)"),
    // Every success may have it.
    ("[{header: {Content-Type: present}, is: deleted}]", "deleted (200 and others)"),
    ("[{header: {Date: present}, is: retry}]", "retry (200 and others)"),
    ("[{json: {/n: present}, is: retry}]", "retry (200 and others)"),
    ("[{json: {/n: present}, is: unknown}]", "unknown (200 and others)"),
    ("[{status: 200, json: {/errors: present}, is: deleted}]", "deleted (200)"),
    (
      "[{status: 200, header: {A: present}, is: final}, {header: {Date: present}, is: retry}]",
      "retry (200 and others)"
    ),
    // Success meets an earlier rule.
    ("[{status: 2xx, is: final}, {header: {Date: present}, is: retry}]", nil),
    ("[{status: 2xx, header: {Date: present}, is: final}, {header: {Date: present}, is: retry}]", nil),
    // A failure that a backend states in a response of success.
    ("[{status: 200, json: {/errors/0/code: PERSISTED_QUERY_NOT_FOUND}, is: deleted}]", nil),
    ("[{header: {X-Failed: \"true\"}, is: retry}]", nil),
    ("[{header: {X-Failed: \"true\", Date: present}, is: retry}]", nil),
    ("[{status: [4xx, 500], header: {Date: present}, is: retry}]", nil), ("stripe", nil),
  ])
  func `a rule that counts success as none is warned of`(outcomes: String, text: String?) throws {
    let found = try load(route("outcomes: \(outcomes)")).ownWarnings.map(\.description)
    #expect(found.count == (text == nil ? 0 : 1), "\(found)")
    if let text {
      #expect(found.first?.contains("routes[0].outcomes: counts success under \(text): ") == true, "\(found)")
    }
  }

  @Test func `of a rule without a value the warning says how to mend it`() throws {
    let ends = try ["[{header: {Date: present}, is: retry}]", "[{status: 2xx, is: retry}]"].map {
      try load(route("outcomes: \($0)")).ownWarnings.map { $0.description.split(separator: "; ").last ?? "" }
    }
    #expect(
      ends == [
        [
          "give the rule that names no value the statuses that it means, such as [4xx, 5xx], or the value by which a "
            + "response says so"
        ], ["take 2xx out of retry"],
      ])
  }

  /// (The members of the route, the statuses and the class that are warned of, and the remedy.)
  @Test(arguments: [
    ("outcomes: {retry: [502, 504]}", "502, 504 under retry", "unknown: [502, 504]"),
    (
      "outcomes: {retry: [5xx]}", "502, 504, 520, 524, 527 under retry",
      "unknown: [502, 504, 520, 524, 527]"
    ),
    (
      "outcomes: [{status: [502, 504], is: retry}]", "502, 504 under retry",
      "{status: [502, 504], is: unknown} as the first rule"
    ),
    (
      "outcomes: [{status: 504, is: deleted}]", "504 under deleted",
      "{status: [504], is: unknown} as the first rule"
    ),
    (
      "outcomes: success_only, retries: {on: [502, 504]}", "502, 504, 520, 524, 527 under retry",
      "{status: [502, 504, 520, 524, 527], is: unknown} as the first rule"
    ),
    ("outcomes: {retry: [5xx], unknown: [502, 504, 520, 524, 527]}", nil, ""),
    ("outcomes: [success_only, {status: [502, 504, 520, 524, 527], is: unknown}]", nil, ""),
    ("outcomes: [{status: 5xx, header: {Transient-Error: \"true\"}, is: retry}]", nil, ""),
    ("outcomes: {retry: [500, 503]}", nil, ""), ("profile: webhook", nil, ""),
    ("idempotency: \"off\", outcomes: {retry: [502]}", nil, ""),
  ])
  func `a status by which an intermediary knows nothing is warned of where it lets a request run again`(
    members: String, statuses: String?, remedy: String
  ) throws {
    let found = try load(route(members)).ownWarnings.map(\.description)
    #expect(found.count == (statuses == nil ? 0 : 1), "\(found)")
    guard let statuses else { return }
    let start = "routes[0].outcomes: counts \(statuses): a gateway or a CDN responds so when it does not know"
    #expect(found.first?.contains(start) == true, "\(found)")
    #expect(found.first?.contains("may then run it twice") == true, "\(found)")
    #expect(found.first?.hasSuffix("write \(remedy)") == true, "\(found)")
  }

  @Test func `of several routes the same statuses are warned of once, and beside a profile at the retries`()
    throws
  {
    let routes = "routes: [{name: r, match: {path: /r}}, {name: s, match: {path: /s}}]\n"
    let inherited = try load(
      upstream + "defaults: {caller: {parts: [address]}, outcomes: {retry: [502]}}\n" + routes
    ).ownWarnings.map(\.description)
    #expect(inherited.map { $0.contains("defaults.outcomes: counts 502 under retry") } == [true])
    let webhook = try load(route("profile: webhook, retries: {on: [502]}")).ownWarnings.map(\.description)
    #expect(webhook.map { $0.contains("routes[0].retries: counts 502, 504") } == [true], "\(webhook)")
  }

  @Test(arguments: [
    ("[{status: 5xx, is: retry}]", nil), ("[{status: 500, header: {A: b}, is: retry}]", nil),
    ("[{status: 500, is: deleted}]", nil), ("success_only", nil),
    (
      "[{status: 500, is: unknown}]",
      "is of class unknown on this route, and never repeated; write a rule for it"
    ),
    ("stripe", "is of class final on this route, and never repeated; write a rule for it"),
  ])
  func `retries go by the rules`(outcomes: String, issue: String?) {
    let found = issues(route("outcomes: \(outcomes), retries: {on: [500]}"))
    #expect(
      found.map { $0.contains("retries.on[0]: \(issue ?? "-")") } == (issue == nil ? [] : [true]), "\(found)")
  }
}

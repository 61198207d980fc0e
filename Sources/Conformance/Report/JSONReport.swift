/// The report as one JSON document, with every exchange.
enum JSONReport {
  static func text(_ report: Report) -> String {
    let profile = Profile(report)
    let answers = Answers(report)
    let document = object([
      ("url", .string(report.setup.endpoint.url)),
      ("profile", .string(report.setup.expected.name)),
      ("failed", .bool(report.hasFailed)),
      (
        "answers",
        object([
          ("charged_twice", answer(answers.chargedTwice)), ("sees_another", answer(answers.seesAnother)),
          ("missing", .string(answers.missing)),
        ])
      ),
      ("counts", object(Verdict.Kind.allCases.map { ($0.rawValue, .number("\(report.count($0))")) })),
      ("cases", .array(report.results.map { result($0, at: report.setup.endpoint) })),
      ("behaviour", object(profile.behaviour.map { ($0.name, .string($0.value)) })),
      ("semel_configuration", .string(profile.configuration(.recommended))),
      ("alike_configuration", profile.alikeConfiguration.map(JSONValue.string) ?? .null),
    ])
    return document.text() + "\n"
  }

  private static func answer(_ answer: Answers.Answer) -> JSONValue {
    object([("answer", .string(answer.kind.rawValue)), ("reason", .string(answer.reason))])
  }

  private static func result(_ result: CaseResult, at endpoint: Endpoint) -> JSONValue {
    object([
      ("id", .string(result.examined.id)),
      ("title", .string(result.examined.title)),
      ("level", .string(result.examined.level.rawValue)),
      ("verdict", .string(result.verdict.kind.rawValue)),
      ("reason", .string(result.verdict.reason)),
      ("exchanges", .array((result.evidence?.exchanges ?? []).map { exchange($0, at: endpoint) })),
    ])
  }

  private static func exchange(_ exchange: Exchange, at endpoint: Endpoint) -> JSONValue {
    var members: [(String, JSONValue)] = [
      ("curl", .string(CurlLine.text(exchange.request, at: endpoint))),
      ("method", .string(exchange.request.method)),
      ("target", .string(exchange.request.target)),
      ("fields", .array(exchange.request.lines.map { .string(CurlLine.shortened($0)) })),
    ]
    switch exchange.outcome {
    case .response(let response):
      members.append(("status", .number("\(response.status)")))
      members.append(("response_fields", .array(response.fields.map { .string($0.line) })))
      members.append(("body", .string(response.text)))
    case .abandoned, .none, .endless:
      members.append(("no_response", .string(TextReport.outcome(exchange.outcome))))
    }
    return object(members)
  }

  private static func object(_ members: [(String, JSONValue)]) -> JSONValue {
    .object(members.map { JSONValue.Member($0.0, $0.1) })
  }
}

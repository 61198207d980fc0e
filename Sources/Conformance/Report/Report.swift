import Wire

/// All results of a check.
public struct Report: Sendable {
  public var setup: Setup
  public var keyStyle: Composer.KeyStyle
  /// Whether the endpoint accepts the request at all; otherwise nothing was examined.
  public var isAccepted = true
  public var results: [CaseResult]

  /// The forms of a report.
  public enum Format: String, CaseIterable, Sendable {
    case text, tap, junit, json
  }

  /// Whether a MUST is violated, or nothing could be examined.
  public var hasFailed: Bool { !isAccepted || count(.fail) > 0 }

  public func count(_ kind: Verdict.Kind) -> Int { results.count { $0.verdict.kind == kind } }

  /// The report as text in a format, without a secret.
  public func text(_ format: Format) -> String {
    let report = redacted
    return switch format {
    case .text: TextReport.text(report)
    case .tap: TAPReport.text(report)
    case .junit: JUnitReport.text(report)
    case .json: JSONReport.text(report)
    }
  }

  var sections: [(section: Section, results: [CaseResult])] {
    Section.allCases.compactMap { section in
      let own = results.filter { $0.examined.section == section }
      return own.isEmpty ? nil : (section, own)
    }
  }

  /// The verdict on a case by its id; `nil` if it was not examined.
  public func verdict(_ id: String) -> Verdict? { results.first { $0.examined.id == id }?.verdict }

  func evidence(_ id: String) -> Evidence? { results.first { $0.examined.id == id }?.evidence }
}

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

/// The report in the XML that CI systems read as JUnit's.
enum JUnitReport {
  static func text(_ report: Report) -> String {
    var lines = [#"<?xml version="1.0" encoding="UTF-8"?>"#]
    lines.append(
      #"<testsuites name="semel conformance" tests="\#(report.results.count)" failures="\#(report.count(.fail))">"#
    )
    for (section, results) in report.sections {
      let failures = results.count { $0.verdict.kind == .fail }
      let skipped = results.count { [.skip, .inconclusive].contains($0.verdict.kind) }
      lines.append(
        #"  <testsuite name="\#(escaped("\(section.rawValue) \(section.title)"))" tests="\#(results.count)" "#
          + #"failures="\#(failures)" skipped="\#(skipped)">"#)
      lines += results.flatMap { testCase($0, at: report.setup.endpoint) }
      lines.append("  </testsuite>")
    }
    return (lines + ["</testsuites>"]).joined(separator: "\n") + "\n"
  }

  private static func testCase(_ result: CaseResult, at endpoint: Endpoint) -> [String] {
    let head =
      #"    <testcase classname="\#(escaped(result.examined.section.rawValue))" "#
      + #"name="\#(escaped("\(result.examined.name): \(result.examined.title)"))""#
    let reason = escaped(result.verdict.reason)
    switch result.verdict.kind {
    case .pass where result.verdict.reason.isEmpty:
      return [head + "/>"]
    case .pass, .info, .warn:
      let text = "\(result.verdict.kind.rawValue): \(reason)"
      return [head + ">", "      <system-out>\(text)</system-out>", "    </testcase>"]
    case .skip, .inconclusive:
      let message = "\(result.verdict.kind.rawValue): \(reason)"
      return [head + ">", #"      <skipped message="\#(message)"/>"#, "    </testcase>"]
    case .fail:
      let exchanges = (result.evidence?.exchanges ?? []).prefix(4).flatMap {
        [CurlLine.text($0.request, at: endpoint), TextReport.outcome($0.outcome)]
      }
      return [
        head + ">",
        #"      <failure message="\#(reason)">\#(escaped(exchanges.joined(separator: "\n")))</failure>"#,
        "    </testcase>",
      ]
    }
  }

  /// A text for XML 1.0, which has no form for most control characters.
  private static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case _ where scalar.value < 0x20 && scalar.value != 0x0A || scalar.value == 0x7F: result += "\u{FFFD}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

/// The report in the Test Anything Protocol, version 14.
enum TAPReport {
  static func text(_ report: Report) -> String {
    var lines = ["TAP version 14", "1..\(report.results.count)"]
    for (index, result) in report.results.enumerated() {
      lines.append("\(line(result, number: index + 1))")
      lines += diagnosis(result, at: report.setup.endpoint)
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// A violated SHOULD is a `TODO`, which fails no run; what could not be examined is skipped, and so never passed.
  private static func line(_ result: CaseResult, number: Int) -> String {
    let name = escaped("\(result.examined.id) \(result.examined.title)")
    let reason = escaped(result.verdict.reason)
    return switch result.verdict.kind {
    case .pass, .info: "ok \(number) - \(name)"
    case .fail: "not ok \(number) - \(name)"
    case .warn: "not ok \(number) - \(name) # TODO SHOULD: \(reason)"
    case .skip: "ok \(number) - \(name) # SKIP \(reason)"
    case .inconclusive: "ok \(number) - \(name) # SKIP inconclusive: \(reason)"
    }
  }

  private static func diagnosis(_ result: CaseResult, at endpoint: Endpoint) -> [String] {
    guard result.verdict.kind != .skip, !(result.verdict.kind == .pass && result.verdict.reason.isEmpty)
    else {
      return []
    }
    var lines = [
      "  ---", "  verdict: \(result.verdict.kind.rawValue)", "  level: \(result.examined.level.rawValue)",
      "  message: \(result.verdict.reason.jsonString)",
    ]
    if [.fail, .warn].contains(result.verdict.kind), let exchanges = result.evidence?.exchanges {
      lines.append("  exchanges:")
      for exchange in exchanges.prefix(4) {
        lines.append("    - request: \(CurlLine.text(exchange.request, at: endpoint).jsonString)")
        lines.append("      response: \(TextReport.outcome(exchange.outcome).jsonString)")
      }
    }
    return lines + ["  ..."]
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("\\", with: "\\\\").replacing("#", with: "\\#").replacing("\n", with: " ")
  }
}

/// The report for a person: three answers, a table for each section, each failure, and the API's profile.
enum TextReport {
  static func text(_ report: Report) -> String {
    var lines = ["\(report.setup.endpoint.url), profile \(report.setup.expected.name)", ""]
    lines += Answers(report).lines + [""]
    for (section, results) in report.sections {
      let number = section == .beyond ? "" : section.rawValue + " "
      lines.append(number + section.title)
      lines += results.map(row)
      lines.append("")
    }
    lines += problems(report)
    lines += [summary(report), ""] + Profile(report).lines
    return printable(lines.joined(separator: "\n")) + "\n"
  }

  /// A text without the control characters of the endpoint, which a terminal would take for commands.
  static func printable(_ text: String) -> String { text.filter { $0 == "\n" || !isControl($0) } }

  private static func row(_ result: CaseResult) -> String {
    let reason = result.verdict.reason
    return "  " + padded(result.verdict.kind.rawValue, 13)
      + padded(result.examined.level.rawValue.uppercased(), 7)
      + padded(result.examined.name, 30) + result.examined.title + (reason.isEmpty ? "" : ": " + reason)
  }

  static func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(1, width - text.count))
  }

  private static func problems(_ report: Report) -> [String] {
    report.results.filter { [.fail, .warn].contains($0.verdict.kind) }.flatMap { result in
      ["\(result.verdict.kind.rawValue.uppercased()) \(result.examined.id): \(result.verdict.reason)"]
        + exchanges(of: result, at: report.setup.endpoint) + [""]
    }
  }

  private static func exchanges(of result: CaseResult, at endpoint: Endpoint) -> [String] {
    let all = result.evidence?.exchanges ?? []
    let shown = all.prefix(4).flatMap { exchange in
      ["  " + CurlLine.text(exchange.request, at: endpoint), "    " + outcome(exchange.outcome)]
    }
    return all.count > 4 ? shown + ["  and \(all.count - 4) more"] : shown
  }

  static func outcome(_ outcome: Exchange.Outcome) -> String {
    switch outcome {
    case .abandoned: return "the client went away"
    case .none(let reason), .endless(let reason): return reason
    case .response(let response):
      let names: Set = ["content-type", "link", "retry-after", "location"]
      let fields = response.fields.filter { names.contains($0.name.lowercased()) }.map(\.line)
      let body = CurlLine.shortened(response.text).filter { !$0.isNewline }
      return (["\(response.status)"] + fields + (body.isEmpty ? [] : [body])).joined(separator: " | ")
    }
  }

  private static func isControl(_ character: Character) -> Bool {
    character.unicodeScalars.contains { $0.properties.generalCategory == .control }
  }

  static func summary(_ report: Report) -> String {
    let counts = Verdict.Kind.allCases.map { "\(report.count($0)) \($0.rawValue)" }
    return counts.joined(separator: ", ")
      + (report.isAccepted ? "" : "\nThe endpoint does not accept the request: nothing was examined.")
  }
}

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

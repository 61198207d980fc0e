import Wire

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

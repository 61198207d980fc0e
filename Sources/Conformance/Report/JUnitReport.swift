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

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

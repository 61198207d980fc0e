/// The report's three answers for a reader who has five seconds.
struct Answers {
  struct Answer: Equatable {
    /// `unknown` where too little was examined for a yes or a no: never a no by default.
    enum Kind: String { case yes, no, unknown }

    let kind: Kind
    let reason: String

    var text: String { "\(kind.rawValue): \(reason)" }
  }

  private let report: Report

  init(_ report: Report) { self.report = report }

  /// The answers with their questions, a line each.
  var lines: [String] {
    let rows = [
      ("Is anyone charged twice?", chargedTwice.text),
      ("Does anyone see another's response?", seesAnother.text), ("What is missing?", missing),
    ]
    let width = (rows.map(\.0.count).max() ?? 0) + 2
    return rows.map { TextReport.padded($0, width) + $1 }
  }

  var chargedTwice: Answer {
    let examined = report.results.filter { $0.isAboutOneRun }
    let again = examined.filter(\.ranAgain)
    guard again.isEmpty else { return Answer(kind: .yes, reason: Self.reason(again)) }
    // Without an oracle, another result shows no second run, and yet hardly anything else explains it.
    if examined.allSatisfy(\.isUndecided), report.verdict("2.6/retry-same-result")?.kind == .warn,
      let reason = report.verdict("2.6/retry-same-result")?.reason
    {
      return Answer(kind: .unknown, reason: "probably, since a retry got another result (\(reason))")
    }
    return answer(examined.filter { $0.examined.section != .fingerprint }, "each ran once")
  }

  var seesAnother: Answer {
    let examined = report.results.filter { Self.aboutCallers.contains($0.examined.id) }
    let seen = examined.filter(\.showsAnother)
    guard seen.isEmpty else { return Answer(kind: .yes, reason: Self.reason(seen)) }
    return answer(examined, "no response of the first caller")
  }

  private static let aboutCallers: Set = [
    "5/other-caller-sees-nothing", "5/other-caller-learns-nothing", "5/no-replay-without-credentials",
  ]

  /// The violated requirements, and the options for want of which cases were not examined.
  var missing: String {
    let violated = [(Verdict.Kind.fail, "MUST"), (.warn, "SHOULD")].compactMap { kind, level in
      let count = report.count(kind)
      return count == 0 ? nil : "\(count) \(level)"
    }
    let options = Need.allCases.filter { need in
      !report.setup.has(need) && report.results.contains { $0.examined.needs.contains(need) }
    }.compactMap(\.option)
    let texts = [
      violated.isEmpty ? nil : "the API violates \(violated.joined(separator: " and "))",
      options.isEmpty ? nil : "the check lacks \(options.joined(separator: ", "))",
    ].compactMap(\.self)
    return texts.isEmpty ? "nothing that was examined" : texts.joined(separator: "; ")
  }

  /// The answer where nothing bad was seen: a no if all cases were decided.
  private func answer(_ examined: [CaseResult], _ good: String) -> Answer {
    guard report.isAccepted else {
      return Answer(kind: .unknown, reason: "the endpoint does not accept the request")
    }
    let undecided = examined.filter(\.isUndecided)
    guard let first = undecided.first else {
      return examined.isEmpty
        ? Answer(kind: .unknown, reason: "no case about it was examined")
        : Answer(kind: .no, reason: "\(good) in \(Self.cases(examined.count))")
    }
    let decided = examined.count - undecided.count
    let seen = decided == 0 ? "" : "\(good) in \(Self.cases(decided)), but "
    return Answer(kind: .unknown, reason: "\(seen)\(first.examined.id): \(first.verdict.reason)")
  }

  private static func reason(_ results: [CaseResult]) -> String {
    guard let first = results.first else { return "" }
    let more = results.count == 1 ? "" : ", and \(cases(results.count - 1)) more"
    return "\(first.verdict.reason) (\(first.examined.id)\(more))"
  }

  private static func cases(_ count: Int) -> String { count == 1 ? "1 case" : "\(count) cases" }
}

extension CaseResult {
  /// True of a case whose deliveries have one key, and may run once at most. Those of a spelling may also be refused.
  fileprivate var isAboutOneRun: Bool {
    examined.section == .fingerprint || examined.section == .enforcement && examined.needs.contains(.oracle)
      || ["2.2/other-payload-not-run", "beyond/pipelined"].contains(examined.id)
  }

  fileprivate var ranAgain: Bool {
    [.fail, .warn].contains(verdict.kind) && evidence?.ranAgain == true
  }

  /// True if another caller, or nobody, got the first caller's response. A refusal that betrays a key shows none.
  fileprivate var showsAnother: Bool {
    guard verdict.kind == .fail else { return false }
    return examined.id != "5/other-caller-learns-nothing" || evidence?[1]?.isSuccess == true
  }

  fileprivate var isUndecided: Bool { [.skip, .inconclusive].contains(verdict.kind) }
}

extension Need {
  /// The option that gives this part; `nil` for a property of the payload.
  fileprivate var option: String? {
    switch self {
    case .oracle: "--count-url"
    case .otherPayload: "--vary"
    case .otherCaller: "--other-caller"
    case .credentials: "--header"
    case .slowRequest: "--slow-request"
    case .failingRequest: "--failing-request"
    case .ttl: "--ttl"
    case .jsonPayload, .multipartPayload: nil
    }
  }
}

extension Report {
  /// The three lines for a reader who has five seconds, without a secret.
  public var answers: [String] { Answers(redacted).lines.map(TextReport.printable) }
}

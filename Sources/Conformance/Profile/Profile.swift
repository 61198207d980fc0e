/// The behaviour of an API as the check has seen it, and a configuration of Semel that behaves alike.
struct Profile {
  private let report: Report

  init(_ report: Report) { self.report = report }

  /// The behaviours that were seen, each with its name.
  var behaviour: [(name: String, value: String)] {
    [
      ("keys", keys), ("without a key", statusText("2.7/missing-400", 0)),
      ("another payload", statusText("2.7/reuse-status", 1)), ("in flight", concurrency),
      ("4xx of the application", reason("2.6/application-4xx")),
      ("5xx of the application", reason("2.6/application-error")),
      ("replays are marked by", reason("2.6/marker")), ("white space in JSON", reason("2.4/white-space")),
      ("after expiry", reason("2.3/after-expiry")), ("scope", scope),
    ].compactMap { name, value in value.map { (name, $0) } }
  }

  /// The end of the report for a person.
  var lines: [String] {
    guard report.isAccepted else { return [] }
    let width = (behaviour.map(\.name.count).max() ?? 0) + 2
    let rows = behaviour.map {
      "  " + $0.name + String(repeating: " ", count: width - $0.name.count) + $0.value
    }
    let title =
      ignoresKeys ? "Semel in front of the API makes keys count there, with" : "Semel behaves alike with"
    return ["The API's behaviour"] + rows + ["", title]
      + configuration.split(separator: "\n").map { "  " + $0 }
  }

  /// Whether every delivery with one key ran, as far as an oracle of executions shows it.
  var ignoresKeys: Bool {
    guard let evidence = report.evidence("2.6/retry-runs-once"), evidence.exchanges.count > 1 else {
      return false
    }
    let count = evidence.exchanges.count
    return evidence.executions == .exactly(count) || evidence.executions == .atLeast(count)
  }

  private var keys: String? {
    guard !ignoresKeys else { return "ignored: each delivery with the same key runs" }
    var texts = [report.keyStyle == .quoted ? "quoted" : "bare only"]
    if let both = reason("2.1/quoted-is-bare") { texts.append("quoted and bare: \(both)") }
    return texts.joined(separator: "; ")
  }

  private var concurrency: String? {
    if let second = report.evidence("2.6/in-flight-conflict")?[1] {
      return second.isSuccess ? "waits for the first delivery's result" : "refused with \(second.status)"
    }
    return reason("2.6/concurrent-results")
  }

  private var scope: String? {
    guard !ignoresKeys else { return nil }
    let texts = [
      reason("2.2/trailing-slash").map { "with a slash behind the path \($0)" },
      (verdict("5/other-caller-runs")?.kind == .pass) ? "each caller has keys of its own" : nil,
      (verdict("5/other-caller-runs")?.kind == .fail) ? "all callers share their keys" : nil,
    ].compactMap(\.self)
    return texts.isEmpty ? nil : texts.joined(separator: "; ")
  }

  func verdict(_ id: String) -> Verdict? { report.verdict(id) }

  /// The reason of a verdict that rests on evidence.
  func reason(_ id: String) -> String? {
    guard let verdict = verdict(id), ![.skip, .inconclusive].contains(verdict.kind), !verdict.reason.isEmpty
    else { return nil }
    return verdict.reason
  }

  func response(_ id: String, _ number: Int) -> RawResponse? { report.evidence(id)?[number] }

  private func statusText(_ id: String, _ number: Int) -> String? {
    response(id, number).map { $0.isSuccess ? "accepted (\($0.status))" : "refused with \($0.status)" }
  }

  var setup: Setup { report.setup }
}

import Wire

/// The behaviour of an API as the check has seen it, and the configuration of Semel for it.
struct Profile {
  private let report: Report

  init(_ report: Report) { self.report = report }

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

  var lines: [String] {
    guard report.isAccepted else { return [] }
    let width = (behaviour.map(\.name.count).max() ?? 0) + 2
    let rows = behaviour.map { "  " + TextReport.padded($0.name, width) + $0.value }
    let title =
      ignoresKeys || showsNoKeys
      ? "Semel in front of the API makes keys count there, with" : "Semel recommends for the API"
    return ["The API's behaviour"] + rows + ["", title] + Self.indented(configuration(.recommended))
      + (alikeConfiguration.map {
        ["", "NOT RECOMMENDED, since it repeats the API's weaknesses: Semel behaves alike with"]
          + Self.indented($0)
      } ?? [])
  }

  private static func indented(_ text: String) -> [String] { text.split(separator: "\n").map { "  " + $0 } }

  /// Whether every delivery with one key ran, as far as an oracle of executions shows it.
  var ignoresKeys: Bool {
    guard let evidence = report.evidence("2.6/retry-runs-once"), evidence.exchanges.count > 1 else {
      return false
    }
    let count = evidence.exchanges.count
    return evidence.executions == .exactly(count) || evidence.executions == .atLeast(count)
  }

  /// Whether nothing shows that keys count at all: two of them got the same result, and the executions are not known.
  var showsNoKeys: Bool {
    let evidence = report.results.compactMap(\.evidence)
    return evidence.contains(where: \.keysShareResults) && evidence.allSatisfy { $0.executions == .unknown }
  }

  private var keys: String? {
    guard !ignoresKeys else { return "ignored: each delivery with the same key runs" }
    guard !showsNoKeys else { return "taken or ignored: only an oracle of executions can tell" }
    var texts = [report.keyStyle == .quoted ? "quoted" : "bare only"]
    if let both = reason("2.1/quoted-is-bare") { texts.append("quoted and bare: \(both)") }
    return texts.joined(separator: "; ")
  }

  /// The treatment of a duplicate that comes while the first delivery is in flight.
  enum DuplicateTreatment: Equatable {
    case runs
    case waits
    case refused(Int)
    /// Accepted, although it is not known to be a replay.
    case accepted(Int)
  }

  var duplicateTreatment: DuplicateTreatment? {
    // Both cases have the same script. The executions count before any response.
    let scripts = ["2.6/in-flight-runs-once", "2.6/in-flight-conflict"].compactMap(report.evidence)
    if scripts.contains(where: \.ranAgain) { return .runs }
    guard let seen = report.evidence("2.6/in-flight-conflict"),
      verdict("2.6/in-flight-conflict")?.kind != .inconclusive, let response = seen[seen.duplicate]
    else { return nil }
    if !response.isSuccess { return .refused(response.status) }
    guard seen.isReplay(1) == true, seen[0]?.hasSameResult(as: response) == true else {
      return .accepted(response.status)
    }
    return .waits
  }

  private var concurrency: String? {
    switch duplicateTreatment {
    case .runs?: "runs a second time"
    case .waits?: "waits for the first delivery's result"
    case .refused(let status)?: "refused with \(status)"
    case .accepted(let status)?: "accepted (\(status))"
    case nil: reason("2.6/concurrent-results")
    }
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

extension Evidence {
  var ranAgain: Bool {
    switch executions {
    case .exactly(2...), .atLeast(2...): true
    case .exactly, .atLeast, .unknown: false
    }
  }
}

extension Profile {
  enum Purpose {
    /// A route that protects the API's requests, and keeps to what its clients know already.
    case recommended
    /// A route that behaves like the API, as far as Semel can, with the API's faults.
    case alike
  }

  func configuration(_ purpose: Purpose) -> String {
    """
    \(members.joined(separator: "\n"))
    routes:
      - \(routeMembers(purpose).joined(separator: "\n    "))

    """
  }

  /// The configuration that behaves like the API; `nil` if the recommended one does, or nothing shows that keys count.
  var alikeConfiguration: String? {
    guard !ignoresKeys, !showsNoKeys else { return nil }
    let alike = configuration(.alike)
    return alike == configuration(.recommended) ? nil : alike
  }

  private var members: [String] {
    // The API itself may have the usual port of this machine.
    let port = setup.endpoint.isLoopback && setup.endpoint.port == 8080 ? 8090 : 8080
    return [
      "listen: [{address: \"127.0.0.1:\(port)\"}]", "upstreams: {api: {url: \(origin.jsonString)}}",
      "store: {kind: embedded, path: semel.db}",
    ] + (passesUnderscores ? ["underscores: pass"] : [])
  }

  /// Whether a field by which requests are identified reaches the API only if Semel passes underscores.
  private var passesUnderscores: Bool {
    setup.keyHeader.contains("_")
      || setup.callerPart.map { $0.hasPrefix("header:") && $0.contains("_") } == true
  }

  private var origin: String {
    "\(setup.endpoint.isSecure ? "https" : "http")://\(setup.endpoint.authority)"
  }

  private func routeMembers(_ purpose: Purpose) -> [String] {
    [
      "name: api",
      "match: {methods: [\(setup.method)], path: \(setup.endpoint.path.jsonString)}",
      "key: {from: [\("header:\(setup.keyHeader)".jsonString)]}",
      "caller: \(caller(purpose))",
      response("2.7/missing-400", 0)?.isSuccess == true ? "idempotency: optional" : "idempotency: required",
      mismatchStatus.map { "mismatch_status: \($0)" },
      duplicates.map { "duplicates: \($0)" },
      retry.map { "outcomes: {retry: [\($0)]}" },
    ].compactMap(\.self) + (purpose == .alike ? faults : [])
  }

  /// The members that weaken a route to what the API does.
  private var faults: [String] {
    [
      fingerprint.map { "fingerprint: {body: \($0)}" },
      retention.map { "retention: \($0)\n    remember: \($0)" },
    ].compactMap(\.self)
  }

  /// The field by which the check knows callers. If the check knows none, the reader is to name the field: one caller
  /// must not get the responses to another one. Callers share their keys only where the API has them do so.
  private func caller(_ purpose: Purpose) -> String {
    if purpose == .alike, sharesKeys || !setup.mayNameCaller { return "{shared: true}" }
    if let part = setup.callerPart { return "{parts: [\(part.jsonString)]}" }
    return "{parts: [\"header:Authorization\"]} # name the field by which the API knows its callers"
  }

  private var sharesKeys: Bool { verdict("5/other-caller-runs")?.kind == .fail }

  private var mismatchStatus: Int? {
    response("2.7/reuse-status", 1).map(\.status).flatMap { [400, 409, 422].contains($0) ? $0 : nil }
  }

  private var duplicates: String? {
    switch duplicateTreatment {
    case .waits?: "wait"
    case .refused?: "reject"
    case .runs?, .accepted?, nil: nil
    }
  }

  private var fingerprint: String? {
    guard let seen = report.evidence("2.7/reuse-status"), seen[0] != nil, let second = seen[1] else {
      return nil
    }
    // A payload that ran under the same key was distinguished, although it was not refused.
    if second.isSuccess { return seen.isReplay(1) == true && !ignoresKeys ? "none" : nil }
    return reason("2.4/white-space")?.hasPrefix("distinguished") == true ? "raw" : nil
  }

  /// The class of statuses after which the API runs a key again.
  private var retry: String? {
    reason("2.6/application-4xx")?.hasPrefix("not stored") == true
      ? response("2.6/application-4xx", 0).map { "\($0.status)" } : nil
  }

  private var retention: String? {
    guard let ttl = setup.ttl, reason("2.3/after-expiry") == "runs again" else { return nil }
    return "\(max(1, ttl.components.seconds))s"
  }
}

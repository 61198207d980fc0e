import Idempotency

extension RoutePolicy {
  var successWarnings: [String] {
    guard isEnforced else { return [] }
    var warnings: [String] = []
    for verdict in [OutcomeRule.Verdict.retry, .deleted] {
      guard let (statuses, remedy) = successes(of: verdict) else { continue }
      warnings.append(
        "counts success under \(verdict.rawValue) (\(statuses)): the record is released, and the next delivery of a "
          + "request that has succeeded runs again; \(remedy)")
    }
    if let (statuses, remedy) = successes(of: .unknown) {
      warnings.append(
        "counts success under unknown (\(statuses)): the next delivery of a request that has succeeded gets 409 "
          + "outcome_unknown in place of its response; \(remedy)")
    }
    return warnings
  }

  /// The statuses of success with a verdict, such as `200 and others`, and the remedy. 202 may be unknown (RFC 9110,
  /// section 15.3.3). A rule that wants a value may mean what a backend calls a failure; one that takes any value may
  /// take every success.
  private func successes(of verdict: OutcomeRule.Verdict) -> (statuses: String, remedy: String)? {
    let statuses = (200..<300).filter { status in
      outcomes.mayBe(verdict, whateverValues: status) && (verdict != .unknown || status != 202)
    }
    guard let first = statuses.first else { return nil }
    let remedy =
      outcomes.verdict(byStatus: first) == verdict
      ? "take 2xx out of \(verdict.rawValue)"
      : "give the rule that names no value the statuses that it means, such as [4xx, 5xx], or the value by which a "
        + "response says so"
    return ("\(first)\(statuses.count > 1 ? " and others" : "")", remedy)
  }

  var intermediaryWarning: String? {
    guard isEnforced else { return nil }
    let released = OutcomeTable.ofIntermediaries.filter { outcomes[$0] == .retry }
    guard let first = released.first else { return nil }
    let statuses = released.map(String.init).joined(separator: ", ")
    let isRuled = outcomes.rules != nil || outcomes.preset != .standard
    return
      "counts \(statuses) under \(outcomes.verdict(byStatus: first).rawValue): a gateway or a CDN responds so when it "
      + "does not know whether the backend has run the request, or still runs it; the next delivery, or a retry of "
      + "Semel's own, may then run it twice; unless none stands between Semel and the backend, write "
      + (isRuled ? "{status: [\(statuses)], is: unknown} as the first rule" : "unknown: [\(statuses)]")
  }

  /// Whether Semel itself repeats a request after a status by which an intermediary says that it does not know.
  var repeatsAfterIntermediaries: Bool {
    retries?.on.contains(where: OutcomeTable.ofIntermediaries.contains) ?? false
  }

  /// An equal payload that is the key may be wanted again.
  var rememberWarning: String? {
    guard isEnforced, !key.from.contains(.payload), remember == retention || remember < .seconds(24 * 3600)
    else { return nil }
    let least = max(.seconds(24 * 3600), min(TimeSpan.max, retention + retention))
    return
      "is \(remember.text)\(remember == retention ? ", as long as retention" : ""): a retry that comes later "
      + "finds no record and runs again; write \(least.text) or more, by which it gets 409 key_expired, or take "
      + "this out for the default"
  }
}

// 1: who sends what another one has sent before.
extension Judge {
  /// Notes that the backend states that it has not run a request.
  func statedAbsence(of id: String) {
    let record = records.values.first { $0.id == id }
    note(record, "the backend states that it has not run it")
    record?.absentAt = now
  }

  /// Notes that a node was killed.
  func killed(_ node: Int) {
    nodeEnded()
    deaths[node, default: []].append(now)
  }

  /// A sending after one that is not over: the record was taken over.
  func checkTakeOver(_ after: Record.Sending, after before: Record.Sending, of record: Record) {
    guard record.rule.mayRepeat, !isNewToClock(before, after) else { return }
    if record.rule == .ask, record.absentAt.map({ $0 < before.at }) ?? true {
      violation(
        1, record, "attempt \(after.attempt) was sent, and nobody had said that the last one had not run")
    }
    checkFailed(after, after: before, of: record)
    checkDeath(after, after: before, of: record)
    checkClock(after, after: before, of: record)
  }

  /// Whether a node has been without its store since a moment, so that whatever it sent has failed.
  func isOutage(from moment: Moment, for node: Int) -> Bool {
    outages.contains { outage in
      outage.from <= moment && now <= outage.to && (outage.node ?? node) == node
        && nodeStarts[node].map { $0 < outage.from } ?? false
    }
  }

  /// A node takes nothing over for twice `timeout` and 2.5 s after the store has failed on it.
  private func checkFailed(_ after: Record.Sending, after before: Record.Sending, of record: Record) {
    guard redis == nil, after.attempt == before.attempt + 1, let refusal = refusedAt[after.node],
      refusal.ended + Span(seconds: 1.3) < after.at, after.at < refusal.begun + Span(seconds: 2.9)
    else { return }
    violation(1, record, "node \(after.node) has taken it over after the store had failed on it")
  }

  /// The lease of a node that was killed counts from its last renewal, and `settle` from the end of that.
  private func checkDeath(_ after: Record.Sending, after before: Record.Sending, of record: Record) {
    guard let death = deaths[before.node]?.first(where: { before.at < $0 }), death < after.at,
      isQuiet(since: before.at - Span(seconds: 4), [clockSteps, cutOffs]),
      let run = awaited(before, of: record), let respondsAt = run.respondsAt, death < respondsAt,
      after.at < death + Span(seconds: Rules.lease.seconds - 0.6 + Rules.settle.seconds)
    else { return }
    violation(1, record, "attempt \(after.attempt) was sent before the lease of a dead node had lapsed")
  }

  /// A step of the store's clock ends no lease for a node that knows the clock: its reply shows the step.
  private func checkClock(_ after: Record.Sending, after before: Record.Sending, of record: Record) {
    let since = before.at - Span(seconds: 4)
    guard let redis, redis.topology != .cluster, let acquainted = acquainted[after.node],
      hasOneLoop[after.node] == true, clockSteps.contains(where: { since <= $0 }),
      clockSteps.allSatisfy({ $0 < since || acquainted + Span(seconds: 0.3) < $0 }),
      isQuiet(since: since, [nodeEnds, cutOffs]), let run = awaited(before, of: record)
    else { return }
    violation(1, record, "run \(run.serial) was taken over by a clock that was set")
  }

  /// A delivery is sent once where Semel makes no attempts itself, unless its response allows another attempt.
  func checkDeliveries(_ sending: Record.Sending, of record: Record) {
    guard !record.isItem, record.rule != .repeat else { return }
    let isSentAgain = record.sent.contains { before in
      before.delivery == sending.delivery && !record.isRefused(before, before: now)
        && !record.runs(of: before, before: now).contains { $0.allowedAnother(before: now) }
    }
    guard isSentAgain else { return }
    violation(
      1, record, "node \(sending.node) has sent delivery \(sending.delivery) again", mayBeLost: false)
  }

  /// No attempt follows as many runs as the route allows. A rejected request is no run that counts.
  func checkLimit(_ sending: Record.Sending, of record: Record) {
    guard record.rule == .capped, !record.hasPast else { return }
    let count = record.runs.count { $0.end == .retry && $0.allowedAnother(before: sending.at) }
    if count >= Rules.maxAttempts {
      violation(1, record, "attempt \(sending.attempt) follows \(count) runs that count")
    }
  }

  /// Notes that an operator has removed a record of which an attempt was in flight.
  func forgotClaim(of record: Record, _ attempt: Int) {
    note(record, "attempt \(attempt) was in flight")
    record.forgottenClaim = (attempt, now)
  }

  /// Its owner learns by its next renewal that it owns nothing any more, and sends nothing then.
  func checkForgotten(_ sending: Record.Sending, of record: Record) {
    // Some connections to servers are long.
    let trip = redis == nil ? 0.05 : 0.2
    guard let claim = record.forgottenClaim, !record.isItem, record.rule != .quick,
      sending.attempt <= claim.attempt,
      claim.at + Span(seconds: Rules.longLease.seconds / 3 + trip) < sending.at,
      !standsStill, !hasStandstills, !losesReplies,
      isQuiet(since: claim.at - Span(seconds: 2), [nodeEnds, clockSteps, cutOffs, hiccups])
    else { return }
    violation(6, record, "attempt \(sending.attempt) was sent after it had been forgotten", mayBeLost: false)
  }
}

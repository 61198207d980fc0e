// The promises that the real store does not make. Their lack is excused as narrowly as its servers know it.
extension Judge {
  /// Whether the record's past does not count: an operator, or the store, has forgotten it.
  func isExcused(_ record: Record, _ text: String) -> Bool {
    guard redis != nil else { return false }
    if record.isExcused { return true }
    guard hasLostChange(of: record) else { return false }
    note(record, "excused, since the store has lost a change: \(text)")
    excused += 1
    record.isExcused = true
    return true
  }

  /// Whether the store has lost a change of the record, as it may without demanded replicas.
  func hasLostChange(of record: Record) -> Bool {
    guard let redis, redis.demand == 0, let id = record.id else { return false }
    return redis.hasLost(id)
  }

  /// Notes that the store has forgotten all outcomes, by a step of its clock.
  func forgotAll() {
    forgotAllAt = now
    sentSince.removeAll()
    excuseForgotten()
    // An outcome that is on its way may have a time of before the step.
    schedule.after(Span(seconds: 0.5)) { [self] in excuseForgotten() }
  }

  private func excuseForgotten() {
    for record in records.values.sorted(by: { $0.name < $1.name }) where record.lastEvent > .start {
      note(record, "the store has forgotten all outcomes")
      record.isExcused = true
    }
  }

  /// A node that had an outcome stored, and lives through their loss, begins higher attempts. Its first exchange with the
  /// store shows it the loss.
  func checkGeneration(_ sending: Record.Sending, of record: Record) {
    guard let forgotAllAt, let start = nodeStarts[sending.node], start + Span(seconds: 3) < forgotAllAt,
      let recorded = recordedAt[sending.node], start < recorded, recorded < forgotAllAt
    else { return }
    // Of a server that it has not met before a node knows no earlier time.
    if let redis, redis.promotions.contains(where: { start < $0.at }) { return }
    guard let first = sentSince[sending.node] else {
      if forgotAllAt < now { sentSince[sending.node] = now }
      return
    }
    guard first + Span(seconds: 3) < now, forgotAllAt + Span(seconds: 3) < record.begunAt,
      record.sent.isEmpty, !record.isItem, sending.attempt < Self.nextGeneration
    else { return }
    violation(
      7, record, "attempt \(sending.attempt) after a loss that node \(sending.node) has lived through")
  }

  /// Whether the store's clock was set between two sendings, and the second one's process began about then: it could
  /// not know that the first one was younger than it seemed, which is a limit that the contract states.
  func isNewToClock(_ before: Record.Sending, _ after: Record.Sending) -> Bool {
    guard let start = nodeStarts[after.node] else { return false }
    // The first one's claim may be older than its sending by a lease.
    let claimedAt = before.at - Rules.longLease.span
    return clockSteps.contains { claimedAt <= $0 && $0 <= after.at && $0 <= start + Span(seconds: 3) }
  }

  /// The time for which a node may not have heard of a forget: of the real store longer, if it was disturbed.
  func staleness(since forget: Moment) -> Span {
    let events = disturbances + clockSteps + cutOffs
    let isLong = redis != nil && (standsStill || events.contains { forget - Span(seconds: 4) <= $0 })
    return Span(seconds: isLong ? 4.5 : 0.5)
  }

  /// Whether the store's clock was set back while a copy of a claim may have been under way: its deadline came later.
  func mayBeGrantedLate(_ record: Record) -> Bool {
    let isSo = clockSetBacks.contains { step in
      record.visits.contains { $0.begun <= step && step <= $0.begun + Span(seconds: 2) }
    }
    if isSo { excused += 1 }
    return isSo
  }

  /// An owner leaves a record as it was given back to, unless it has sent something or its claim may have taken the
  /// record over. Its node knows of no other loss.
  func checkUnused(_ step: RecordPath, of record: Record) {
    guard claims != nil, case .record(let last)? = step.before, case .record(let next)? = step.after else {
      return
    }
    if last.state == .released, next.isInFlight {
      record.grant = (next.owner, now)
      return
    }
    guard last.isInFlight, next.isUnknown, last.owner == next.owner, let grant = record.grant,
      grant.owner == next.owner, record.rule.runsAgain, !record.isExcused,
      let claim = claims?.claim(of: next.owner), !claim.mayTakeOver,
      record.sent.allSatisfy({ $0.node != claim.node })
    else { return }
    violation(
      3, record, "is marked unknown by attempt \(next.attempt), which was not sent and took nothing over")
  }

  /// No copy of a claim is granted once its node has given the claim up: nobody would end it.
  func checkGrant(_ step: RecordPath, of record: Record) {
    guard let claims, case .record(let next)? = step.after, next.isInFlight else { return }
    // An owner renews its record also where that is missing.
    guard record.owners.insert(next.owner).inserted else { return }
    // By a clock that was set back its deadline comes later.
    guard clockSetBacks.isEmpty, let sentAt = claims.lastSent(by: next.owner),
      sentAt + Rules.longestCall.span < now
    else { return }
    let seconds = Double((now - sentAt).nanoseconds / 1_000_000) / 1000
    violation(3, record, "is granted to a claim that was sent \(seconds) s ago", mayBeLost: false)
  }

  /// Whether it was given back at a server from which another one took over: releases wait for no replica.
  func hasLostRelease(of record: Record) -> Bool {
    guard let redis, let id = record.id, redis.hasLost(id) else { return false }
    excused += 1
    return true
  }
}

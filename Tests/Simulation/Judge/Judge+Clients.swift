// 2, 4 and 6: what clients got.
extension Judge {
  /// Notes that a delivery begins.
  func begun(_ name: String, _ payload: String, at node: Int) {
    let record = record(name)
    record?.visits.append(Record.Visit(node: node, begun: now))
    record?.deliveriesUnderWay += 1
    if let record, record.begunAt == .start { record.begunAt = now }
    record?.payloads.insert(payload)
  }

  func delivered(_ name: String, _ body: String, begun: Moment, by node: Int, _ finding: Finding) {
    deliveries += 1
    guard let record = record(name) else { return }
    record.deliveriesUnderWay -= 1
    record.last = finding
    if finding.word != "none" { record.noteEnd(begun, at: node, now) }
    checkRefusal(finding, begun, of: record)
    let run = finding.serial.map { " of run \($0)" } ?? ""
    note(record, "a client gets \(finding.status) \(finding.word)\(run) by node \(node)")
    if let serial = finding.serial { check(serial, body, finding, of: record) }
    if finding.word == "executed", forgotAllAt == nil { recordedAt[node] = now }
    if finding.word == "executed", acquainted[node] == nil { acquainted[node] = now }
    if finding.word == "store_unavailable", isOutage(from: begun, for: node) {
      refusedAt[node] = (begun, now)
    }
    guard finding.isOutcome, let response = finding.response, !record.isExcused else { return }
    guard let serial = finding.serial else { return checkNameless(finding, response, of: record) }
    if record.forgotten.contains(serial) {
      // The backend may state the outcome of such a run, unless an operator has stated another.
      if record.rule != .ask || record.operatorsRun != nil, let at = record.forgottenAt,
        begun > at + staleness(since: at)
      {
        violation(6, record, "run \(serial) was replayed after it had been forgotten")
      }
      return
    }
    if let operatorsRun = record.operatorsRun, operatorsRun != serial {
      violation(2, record, "run \(serial) has replaced an operator's run \(operatorsRun)")
    }
    take(response, serial, of: record)
  }

  private func take(_ response: String, _ serial: Int?, of record: Record) {
    if let outcome = record.outcome, outcome.response != response {
      violation(2, record, "got two outcomes, of runs \(outcome.serial ?? 0) and \(serial ?? 0)")
    }
    if record.outcome == nil { record.outcome = (response, serial, now) }
  }

  /// An outcome is that of a run, or that an earlier one of several had deleted what they name.
  private func checkNameless(_ finding: Finding, _ response: String, of record: Record) {
    if let taken = finding.taken {
      guard !record.forgotten.contains(taken) else { return }
      return violation(2, record, "got for an outcome that a duplicate of a run was refused")
    }
    guard record.rule == .remove, finding.status == 204 else {
      return violation(2, record, "got an outcome of no run, \(finding.status)", mayBeLost: false)
    }
    // It may be that of a life before.
    guard !record.hasPast else { return }
    // An attempt before that sent nothing counts, where its node could not say so.
    if record.sent.allSatisfy({ $0.attempt < 2 }) {
      violation(2, record, "got that it was deleted before, by its first attempt")
    }
    take(response, nil, of: record)
  }

  private func check(_ serial: Int, _ payload: String, _ finding: Finding, of record: Record) {
    guard let run = serials[serial], run.record == record.name,
      finding.caller.map(record.name.hasPrefix) ?? false
    else {
      return violation(4, record, "got the outcome of run \(serial), which is another's", mayBeLost: false)
    }
    // A backend that is asked states what it knows of a life that an operator has ended while it was under way, or that
    // the store has lost: the query names no payload.
    let isOfEarlierLife = record.rule == .ask && (record.isExcused || hasLostChange(of: record))
    if run.payload != payload, !run.payload.isEmpty, !isOfEarlierLife {
      violation(4, record, "run \(serial) had another payload than its delivery", mayBeLost: false)
    }
    if finding.word == "not-stored", run.end == .final {
      violation(2, record, "was called not stored, and run \(serial) had ended it", mayBeLost: false)
    }
    guard finding.isOutcome else { return }
    checkContent(finding, of: run, record)
    // A statement of the backend's may end a record of `ask`.
    guard record.rule != .ask, run.end != .final, !isLast(run, of: record) else { return }
    violation(2, record, "got for an outcome what run \(serial) did not end with: \(run.end)")
  }

  /// An outcome has the content of its run, byte for byte, its status and its field.
  private func checkContent(_ finding: Finding, of run: Run, _ record: Record) {
    if let content = run.content, let found = finding.content, content != found {
      let sizes = "\(found.utf8.count) and \(content.utf8.count) bytes"
      violation(2, record, "got another content than that of run \(run.serial), \(sizes)", mayBeLost: false)
    }
    // The backend's statement has neither.
    guard !record.isItem, record.rule != .ask else { return }
    if finding.status != run.status {
      violation(2, record, "got \(finding.status) of run \(run.serial), \(run.status)", mayBeLost: false)
    }
    if !run.isOperators, finding.run != run.serial {
      violation(2, record, "got the fields of another than run \(run.serial)", mayBeLost: false)
    }
  }

  /// Whether a response that may be retried is an outcome all the same: it ended the last attempt that is allowed. A
  /// rejection is none, and does not count.
  private func isLast(_ run: Run, of record: Record) -> Bool {
    guard record.rule == .capped, run.end == .retry else { return false }
    let sendings = record.sent.filter { sending in
      let runs = record.runs(of: sending, before: now)
      let isRejected = !runs.isEmpty && runs.allSatisfy { $0.end == .rejected }
      return !record.isRefused(sending, before: now) && !isRejected
    }
    return record.hasPast || record.isExcused || sendings.count >= Rules.maxAttempts
  }

  /// Whether the last attempt certainly ended with a response that allows another, so that a node gave the record back.
  private func isDecided(_ record: Record) -> Bool {
    guard !record.isItem, !record.hasMetEnd, !hasCuts, !hasStandstills, let last = record.sent.last,
      !hasLostRelease(of: record)
    else { return false }
    let heard = last.at + Span(seconds: record.rule.responseTimeout.seconds - 0.5)
    return record.runs(of: last, before: now).contains { $0.allowedAnother(before: heard) }
  }

  /// A changed payload alone is refused as one, and the status that is given for a response is that of a run.
  private func checkRefusal(_ finding: Finding, _ begun: Moment, of record: Record) {
    guard !record.isExcused else { return }
    if finding.word == "payload_mismatch", record.payloads.count == 1 {
      violation(4, record, "was refused for a changed payload, of which there is one")
    }
    if finding.word == "outcome_unknown", let last = record.sent.last, last.at < begun,
      let run = running(last, of: record)
    {
      violation(3, record, "is called unknown while run \(run.serial) is under way")
    }
    if finding.word == "outcome_unknown", isCalm, isDecided(record) {
      violation(3, record, "is called unknown, and its last attempt could be followed by another")
    }
    // A run that follows a forgotten one may itself end without its whole response.
    let isChanging = record.forgetsUnderWay > 0 && !record.runs.contains { $0.end == .lost }
    if finding.word == "response_not_kept", isChanging || record.operatorsRun != nil {
      violation(2, record, "lacks the response that an operator has stated")
    }
    guard record.isItem, finding.word == "response_not_kept" else { return }
    let ended = record.runs.contains { $0.end == .final && $0.status == finding.original }
    let outcome = record.outcome?.serial.flatMap { serials[$0]?.status }
    if !ended || finding.original == 201 || (outcome ?? finding.original) != finding.original {
      violation(2, record, "got status \(finding.original ?? 0) for an outcome")
    }
  }
}

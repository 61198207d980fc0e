// 3 and 5: how it ended.
extension Judge {
  func checkEnds() {
    for record in records.values.sorted(by: { $0.name < $1.name }) {
      if let last = record.last { checkEnd(of: record, last) }
    }
  }

  private func checkEnd(of record: Record, _ last: Finding) {
    if last.isOutcome || record.isItem && last.word == "response_not_kept" { return }
    if record.isExcused, !last.isRetryable { return }
    if last.word == "response_not_kept", wasCutShort(record, last) { return }
    guard last.word == "outcome_unknown", !last.isRetryable else {
      return violation(3, record, "did not end: \(last.status) \(last.word)", mayBeLost: false)
    }
    if let outcome = record.outcome {
      checkLost(record, at: outcome.at)
    } else if record.rule.mayRepeat {
      violation(3, record, "is held as unknown, although its rule is \(record.rule)")
    } else if !isInDoubt(record), !record.hasMetEnd, !hasCuts,
      !record.isItem || !(hasStandstills || partialBatches > 0), !hasLostRelease(of: record),
      !mayBeGrantedLate(record)
    {
      violation(3, record, "is held as unknown, and nothing in it is in doubt")
    }
  }

  /// An outcome may be given unstored only if the store had failed, and only a node's end may lose it.
  private func checkLost(_ record: Record, at moment: Moment) {
    if mayBeLost(at: moment) {
      excused += 1
    } else {
      violation(5, record, "got an outcome that is now unknown")
    }
  }

  /// Notes that a node's process is over, with what it had under way.
  func nodeEnded() {
    nodeEnds.append(now)
    for record in records.values where record.isActive(at: now) { record.hasMetEnd = true }
  }

  func mayBeLost(at moment: Moment) -> Bool {
    let begun = moment - Span(seconds: 4)
    let hasFailed = [storeFailures, hiccups, cutOffs].contains {
      $0.contains { begun <= $0 && $0 <= moment + Self.slack }
    }
    return hasFailed && nodeEnds.contains { begun <= $0 }
  }

  /// Only the status is recorded of a response that ended before it was whole: of one in an earlier life where the store
  /// has lost an operator's removal.
  private func wasCutShort(_ record: Record, _ last: Finding) -> Bool {
    let allowed: [Run.End] = record.outcome == nil ? [.lost, .final] : [.lost]
    let isLast = { (run: Run) in allowed.contains(run.end) && run.status == last.original }
    if record.runs.contains(where: isLast) { return true }
    guard record.forgotten.compactMap({ serials[$0] }).contains(where: isLast) else { return false }
    return isExcused(record, "it is as before an operator's removal")
  }

  /// Whether anything was sent whose response, while it was awaited, did not allow another attempt.
  private func isInDoubt(_ record: Record) -> Bool {
    // Of a batch that is late only its results are awaited.
    let heard = Span(seconds: record.rule.responseTimeout.seconds - (record.isItem ? 0.4 : 0.1))
    for (index, sending) in record.sent.enumerated() {
      let end = index + 1 < record.sent.count ? record.sent[index + 1].at : now
      if record.isRefused(sending, before: min(end, sending.at + heard)) { continue }
      let runs = record.runs(of: sending, before: end)
      let isKnown = runs.contains { run in
        run.allowedAnother(before: sending.at + heard)
          || record.isItem && run.isFinal(before: sending.at + heard)
      }
      if !isKnown { return true }
    }
    return false
  }
}

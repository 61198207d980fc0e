// The deeds of operators. While something is under way with a record, nothing is guaranteed about its change.
extension Judge {
  /// Notes that an operator has removed a record.
  func forgot(_ record: Record, isQuiet: Bool) {
    note(record, "an operator has forgotten the record")
    beginLife(of: record, isQuiet: isQuiet)
    record.attemptsBefore = 0
  }

  /// Notes that an operator is about to remove a record with an outcome, of which no more than replays are under way: its
  /// next life may begin at any moment.
  func forgetting(_ record: Record) {
    note(record, "an operator is about to forget the record")
    beginLife(of: record, isQuiet: true)
    record.attemptsBefore = 0
    record.forgottenAt = nil
  }

  /// Notes that an operator is about to correct a decision, which may be replayed meanwhile.
  func amending(_ record: Record, as run: Run) {
    note(record, "an operator is about to state run \(run.serial) in place of another")
    beginLife(of: record, isQuiet: true)
    record.forgottenAt = nil
    record.runs.append(run)
  }

  /// Notes that this is done.
  func amended(_ record: Record, as run: Run) {
    note(record, "an operator has stated run \(run.serial)")
    record.forgottenAt = now
    record.operatorsRun = run.serial
  }

  /// Notes that a removal is done.
  func forgot(settled record: Record) {
    note(record, "an operator has forgotten the record")
    record.forgottenAt = now
  }

  /// Notes that an operator has stated that the last attempt did not run.
  func released(_ record: Record, isQuiet: Bool, amending: Bool) {
    note(record, "an operator has released the record")
    if isQuiet { checkDecision(about: record, amending: amending) }
    let attempt = record.isItem ? 0 : record.sent.last?.attempt ?? record.attemptsBefore
    beginLife(of: record, isQuiet: isQuiet)
    record.attemptsBefore = attempt
  }

  /// Notes that an operator has stated an outcome, as that of a run of the operator's, whose payload is empty if it is
  /// not known.
  func stated(_ record: Record, as run: Run, isQuiet: Bool, amending: Bool = false) {
    note(record, "an operator has stated run \(run.serial) as the record's outcome")
    if isQuiet { checkDecision(about: record, amending: amending) }
    beginLife(of: record, isQuiet: isQuiet)
    record.runs.append(run)
    if !run.payload.isEmpty { record.payloads.insert(run.payload) }
    if isQuiet { record.operatorsRun = run.serial }
  }

  /// A decision ends what is unknown, or corrects an earlier one, if it says so.
  private func checkDecision(about record: Record, amending: Bool) {
    guard !record.isExcused else { return }
    if let operatorsRun = record.operatorsRun {
      if !amending {
        violation(2, record, "an operator's run \(operatorsRun) was replaced without amending it")
      }
    } else if let outcome = record.outcome, !mayBeLost(at: outcome.at) {
      violation(2, record, "an operator has replaced the outcome of run \(outcome.serial ?? 0)")
    }
  }

  /// Notes that an operator may have changed a record, or may yet.
  func excuse(_ record: Record) {
    note(record, "an operator may have changed the record")
    excused += 1
    record.isExcused = true
    record.lastEvent = schedule.now
  }

  private func beginLife(of record: Record, isQuiet: Bool) {
    guard isQuiet else { return excuse(record) }
    record.hasPast = true
    record.forgotten.formUnion(record.runs.map(\.serial))
    record.forgottenAt = schedule.now
    (record.sent, record.runs, record.outcome, record.operatorsRun) = ([], [], nil, nil)
    record.lastEvent = schedule.now
  }

  /// Makes a run of an operator's, which clients may find before the operator knows.
  ///
  /// - Parameter payload: Its payload; `nil` if that is not known.
  func operatorsRun(of record: Record, _ payload: String?) -> Run {
    let run = Run(
      serial: Run.firstOfOperators + serials.count, record: record.name, id: "", attempt: 0,
      payload: payload ?? "", status: 201, end: .final, at: schedule.now)
    serials[run.serial] = run
    return run
  }
}

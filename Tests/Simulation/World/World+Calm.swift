// The calm after it, in which everything ends.
extension World {
  func calm() {
    (isStorm, hiccupSpan, losesCompletion) = (false, nil, false)
    origin.shares = []
    (origin.isSick, origin.onRepeatable, origin.habits) = (false, nil, [:])
    origin.returns = [:]
    origin.greeting = { .accepts($0) }
    store.losses = 0
    store.slowness = 0
    store.stay()
    redis?.stay()
    for loop in nodes.flatMap(\.loops) { loop.standstill = 0 }
    network.widen()
    network.each { wire, near, far in
      guard wire.isLost || Rules.isClients(wire.port) else { return }
      wire.heal()
      near.breakOff()
      far.breakOff()
    }
    // After a failure of the real store no node takes anything over for some seconds.
    pass(Span(seconds: redis == nil ? 8 : 16))
    judge.isCalm = true
    var left = intents.count + batches.count
    let limit = schedule.now + Span(seconds: 15)
    for intent in intents {
      schedule.after(dice.span(0, 1)) { [self] in
        clients.conclude(intent, until: limit) { left -= 1 }
      }
    }
    for batch in batches {
      schedule.after(dice.span(0, 1)) { [self] in
        clients.conclude(batch, until: limit) { left -= 1 }
      }
    }
    pass(Span(seconds: 60)) { left == 0 }
    guard judge.violations.isEmpty else { return }
    judge.checkEnds()
    pass(Span(seconds: 12))
    if plan.faults.contains(.resolve) { contest() }
    guard judge.violations.isEmpty else { return }
    for node in nodes { node.lookForUnrest() }
    if redis != nil { lookAtRecords() }
    pass(Span(seconds: redis == nil ? 1 : 15))
    checkRest()
  }

  /// Has operators decide about what has ended, or is unknown, and clients look whether it is as it has to be.
  private func contest() {
    let ended = judge.known.filter { $0.outcome != nil || $0.operatorsRun != nil }
    let unknown = judge.known.filter {
      !$0.isItem && $0.outcome == nil && $0.operatorsRun == nil && $0.last?.word == "outcome_unknown"
    }
    for record in ended.shuffled(using: &dice).prefix(12) + unknown.shuffled(using: &dice).prefix(12) {
      let node = nodes[dice.below(nodes.count)]
      operators.contest(record, at: node, &dice)
    }
    // By then nothing is under way with them.
    pass(Span(seconds: Rules.longestFlight.seconds + 0.5))
    // Some decide again about what has been decided.
    for record in judge.known where record.operatorsRun != nil && dice.chance(0.5) {
      operators.contest(record, at: nodes[dice.below(nodes.count)], &dice)
    }
    pass(Span(seconds: 6))
    correct()
    pass(Span(seconds: 6))
    let limit = schedule.now + Span(seconds: 15)
    var left = 0
    for intent in intents {
      // Whoever came with another payload than the record's while it was corrected looks again, with each.
      let word = judge.records[intent.record]?.last?.word ?? ""
      guard ["payload_mismatch", "outcome_unknown"].contains(word) || dice.chance(0.4) else { continue }
      left += 1
      clients.conclude(intent, until: limit) { left -= 1 }
    }
    for batch in batches where dice.chance(0.4) {
      left += 1
      clients.conclude(batch, until: limit) { left -= 1 }
    }
    pass(Span(seconds: 60)) { left == 0 }
    guard judge.violations.isEmpty else { return }
    judge.checkEnds()
    pass(Span(seconds: 12))
  }

  /// Has operators correct decisions while clients get them: at the one node that is near to the store, so that much may
  /// happen there between the commands of another.
  private func correct() {
    let near = nodes[dice.below(nodes.count)]
    for node in nodes where node !== near { node.sockets.lengthenStores() }
    for intent in intents {
      guard let record = judge.records[intent.record], let stated = record.operatorsRun, !record.isExcused,
        let payload = intent.payloads.count == 1
          ? 0 : intent.payloads.firstIndex(where: { $0 == judge.serials[stated]?.payload })
      else { continue }
      schedule.after(dice.span(0, 0.008)) { [operators] in operators.amend(record, at: near) }
      for index in nodes.indices {
        clients.deliver(intent, payload, to: index, timeOut: Span(seconds: 5)) { _ in }
      }
    }
  }

  /// Nothing is under way any more, and nothing is held.
  private func checkRest() {
    for node in nodes {
      if node.isDraining {
        judge.violation(3, nil, "node \(node.index) has not ended after SIGTERM")
      }
      if let unrest = node.unrest {
        judge.violation(3, nil, "node \(node.index) has no rest: \(unrest)")
      }
    }
    checkStoreRest()
  }
}

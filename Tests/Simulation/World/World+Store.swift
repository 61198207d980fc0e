import Idempotency
import Store

// The store's faults.
extension World {
  func fail(_ fault: Plan.Fault, _ dice: inout Dice) {
    guard let redis else { return failInMemory(fault, &dice) }
    if fault != .storeClock { judge.disturbances.append(schedule.now) }
    switch fault {
    case .storeAway:
      let shard = redis.anyShard()
      guard dice.chance(0.6) else { return shard.kill() }
      shard.killBehindResponse { [judge, schedule] in judge.disturbances.append(schedule.now) }
    case .storeStalls: redis.anyShard().freeze()
    case .storeLosses:
      judge.storeFailures.append(schedule.now)
      breakWires(&dice) { Rules.isStores($0.port) }
    case .storeSlow:
      judge.storeFailures.append(schedule.now)
      slowDown(&dice)
    case .storeHiccup: (hiccupSpan, losesCompletion) = (dice.span(0.02, 0.15), true)
    case .storeScripts: redis.anyShard().flushScripts()
    case .storeClock:
      var steps: [Int64] = [1, 2, 5, 20, 300, -1, -2, -4]
      if plan.faults.contains(.shortMemory) {
        // The nodes know the clock by then, and something follows. Many shorter steps would come to the same.
        let isDue = judge.forgotAllAt == nil && schedule.now.seconds > 3.5
        steps = isDue ? [300] : steps.filter { $0 < 20 }
      }
      judge.clockSteps.append(schedule.now)
      let step = steps[dice.below(steps.count)]
      if step < 0 { judge.clockSetBacks.append(schedule.now) }
      redis.stepClocks(by: step)
      if plan.faults.contains(.shortMemory), Double(step) > Rules.shortMemory.seconds { judge.forgotAll() }
    case .storeFull: redis.anyShard().fill()
    case .replication: redis.anyShard().cutReplication()
    case .failover: redis.anyShard().failOver()
    case .slots:
      let known = judge.records.values.compactMap(\.id).sorted()
      if !known.isEmpty { redis.moveSlot(of: known[dice.below(known.count)]) }
    default: break
    }
  }

  private func failInMemory(_ fault: Plan.Fault, _ dice: inout Dice) {
    guard fault != .storeHiccup else { return hiccup(&dice) }
    switch fault {
    case .storeAway:
      let span = dice.span(0.1, 3)
      let begins = { [judge, schedule] in
        judge.storeFailures.append(schedule.now)
        judge.outages.append((schedule.now, schedule.now + span, nil))
      }
      if dice.chance(0.5) {
        begins()
        return store.leave(for: span)
      }
      // Then a claim was granted of which its node does not know, often one that follows a statement of the backend's.
      let isAny = dice.chance(0.5)
      let isChosen = { [judge] (id: RecordID, record: StoredRecord) in
        isAny || record.followsUnknown && judge.record(of: id)?.rule == .ask
      }
      store.leaveBehindGrant(for: span, where: isChosen, begins)
    case .storeStalls:
      judge.storeFailures.append(schedule.now)
      store.stall(for: dice.span(0.1, 1.5))
    default: break
    }
  }

  /// The store is away for so short a time that no lease lapses.
  private func hiccup(_ dice: inout Dice) {
    guard judge.hiccups.last.map({ $0 + Span(seconds: 1.6) < schedule.now }) ?? true else { return }
    judge.hiccups.append(schedule.now)
    store.leave(for: dice.span(0.02, 0.12))
  }

  /// All connections to Redis break as soon as a record was given back after a loss, and are refused for a moment, in
  /// which its client delivers it again.
  func breakConnections(behind record: Record, _ step: RecordPath) {
    guard let redis, let span = hiccupSpan, record.rule.runsAgain, case .record(let next)? = step.after,
      next.state == .released, next.followsUnknown, !next.owner.isOfOperator,
      let intent = intents.first(where: { $0.record == record.name }),
      let payload = intent.payloads.firstIndex(where: { $0 == record.runs.last?.payload })
    else { return }
    hiccupSpan = nil
    // A node that has sent it knows more of it.
    let others = nodes.indices.filter { index in !record.sent.contains { $0.node == index } }
    schedule.after(Span(seconds: 0.0005)) { [self] in
      guard isStorm else { return }
      redis.refuse(for: span)
      breakStoreConnections()
      for number in 1...3 {
        schedule.after(Span(seconds: 0.004 * Double(number))) { [self] in
          let node = others.isEmpty ? nil : others[dice.below(others.count)]
          clients.deliver(intent, payload, to: node, timeOut: Span(seconds: 3)) { _ in }
        }
      }
    }
  }

  /// All connections to Redis break before anybody hears that a record was completed, and its owner completes it again.
  func loseReply(to record: Record, _ step: RecordPath) {
    guard losesCompletion, isStorm, record.rule.keepsResponseApart, case .record(let last)? = step.before,
      case .record(let next)? = step.after, last.isInFlight, next.state == .completed,
      last.owner == next.owner
    else { return }
    losesCompletion = false
    judge.storeFailures.append(schedule.now)
    schedule.after(.zero) { [self] in breakStoreConnections() }
  }

  private func breakStoreConnections() {
    judge.disturbances.append(schedule.now)
    network.each { wire, near, far in
      guard Rules.isStores(wire.port) else { return }
      near.breakOff()
      far.breakOff()
    }
  }

  /// Connections to the store bring nothing for a moment.
  private func slowDown(_ dice: inout Dice) {
    network.each { wire, _, _ in
      if Rules.isStores(wire.port), dice.chance(0.5) { wire.stall(for: dice.span(0.001, 0.3)) }
    }
  }
}

// The store's rest at the end.
extension World {
  /// Has a node look at one record after the other: `isHeld` says what it finds.
  func lookAtRecords() { look(at: judge.known[...]) }

  private func look(at records: ArraySlice<Record>) {
    guard let record = records.first else { return }
    guard let id = record.id.flatMap({ RecordID(text: $0) }) else { return look(at: records.dropFirst()) }
    nodes[0].look(at: id) { [self] found in
      switch found {
      case .success(.inFlight): record.isHeld = true
      case .success: break
      case .failure(let error): record.readFault = "\(error)"
      }
      look(at: records.dropFirst())
    }
  }

  /// The records whose leases are alive although nobody runs anything.
  func heldRecords() -> [Record?] {
    guard redis == nil else { return judge.known.filter(\.isHeld) }
    return store.entries.sorted { $0.key.text < $1.key.text }.compactMap { id, entry in
      guard case .inFlight = entry.standing(now: store.now) else { return nil }
      return judge.records.values.first { $0.id == id.text }
    }
  }

  /// A node that has lived through a failover has counted it, since what that has lost is not silent.
  private func checkFailovers() {
    for node in nodes where !node.machine.isDead && node.store.failovers == 0 {
      guard let start = judge.nodeStarts[node.index] else { continue }
      // It may learn of the masters some time after its start.
      guard [start, start + Span(seconds: 3)].allSatisfy(hasNewMaster(since:)) else { continue }
      judge.violation(7, nil, "node \(node.index) has counted no failover")
    }
  }

  /// Whether the place of a master then has another one now. A node need not see one that took it in between, and gave
  /// it back.
  private func hasNewMaster(since start: Moment) -> Bool {
    var former: [Int: Int] = [:]
    for promotion in redis?.promotions ?? [] where promotion.at > start {
      former[promotion.next] = former.removeValue(forKey: promotion.former) ?? promotion.former
    }
    return former.contains { $0 != $1 }
  }

  func checkStoreRest() {
    for record in heldRecords() {
      judge.violation(3, record, "a lease is renewed for a run that has ended", mayBeLost: false)
    }
    for record in judge.known {
      guard let fault = record.readFault else { continue }
      judge.violation(3, record, "the store cannot read it: \(fault)", mayBeLost: false)
    }
    checkFailovers()
    let watched = redis?.watched.count ?? store.watchCount
    if watched > 0 { judge.violation(3, nil, "\(watched) records are watched for nobody") }
  }
}

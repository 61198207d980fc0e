import Idempotency
import Platform

extension RedisPipeline {
  /// Ends the next write with the command that waits for replicas, if scripts are open.
  func linkWillWrite() {
    let now = BootInstant.now
    guard let waits, let commands = waits.commands(at: now) else { return }
    if let id = commands.touch { append(touchOf: id, for: waits, at: now) }
    link.append { $0.writeCommand(commands.wait) }
    link.counters.countRoundTrip()
    // It ends with the connection: the scripts that it covers have deadlines of their own.
    let never = BootInstant(nanoseconds: .max)
    pending.append(Pending(waiter: .replicas(waits), deadline: never, sentAt: now))
    unwritten += 1
    arm(at: now + waits.maxWait)
  }

  /// Writes something of a completed record that was only read, for the next wait to cover.
  private func append(touchOf id: RecordID, for waits: ReplicaWaits, at now: BootInstant) {
    let waiter = Waiter.call { reply, _ in waits.touched(id, reply.ending) }
    append(.touch, id, 0, now + settings.timeout, waiter, isWhole: true) { _, _ in }
  }

  /// Holds a reply that counts only once replicas have the change, or the completion. False if it counts now.
  func isHeld(_ reply: ScriptReply, of command: Pending) -> Bool {
    guard let waits else { return false }
    guard command.waiter != nil else {
      if command.awaitsReplicas { waits.dropped() }
      return true
    }
    return waits.hold(
      reply, of: command.id, isAwaited: command.awaitsReplicas, until: command.deadline
    ) {
      [timeout = settings.timeout] in command.finish(with: $0, timeout: timeout)
    }
  }

  func replicasReplied(_ reply: RedisValue, _ waits: ReplicaWaits, at now: BootInstant) {
    switch waits.replied(reply, at: now) {
    case .success(let microseconds?): link.counters.didWait(microseconds)
    case .success(nil): break
    case .failure(let error): link.fail(RedisRefusal.advice(error.text))
    }
  }
}

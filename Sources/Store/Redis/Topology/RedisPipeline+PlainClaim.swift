import Idempotency
import Wire

/// Commands that cost Redis less under load, and the end of what an earlier connection has left of them.
extension RedisPipeline {
  /// Returns an estimate of the store's time that is hardly ever behind it (`RedisClock.latest`); `nil` if the
  /// connection is under no load, or if Redis' time is older than `maxAge`.
  func latestUnderLoad(at now: BootInstant, maxAge: Milliseconds) -> StoreInstant? {
    guard let minPending = settings.load.minPending, pending.count >= minPending else { return nil }
    return clock.latest(at: now, maxAge: maxAge)
  }

  /// Writes a claim without a script. False if the script has to claim: there is no load, this Redis knows no such
  /// command, does not let Semel end its connections, or takes no changes; or its time is not known well enough.
  func appendPlainClaim(
    _ request: ClaimRequest, firstAttempt: Int, until deadline: BootInstant, at now: BootInstant,
    _ waiter: Waiter
  ) -> Bool {
    guard mayClaimPlainly, obstacle == nil,
      let since = latestUnderLoad(at: now, maxAge: settings.load.maxClaimAge),
      let firstSeen = clock.estimate(at: now)
    else { return false }
    invariant(link.isUp, "a claim without a connection")
    let claim = PlainClaim(firstSeen: firstSeen, since: since, attempt: firstAttempt)
    link.append { buffer in
      let capacity = PlainClaim.head.count + keys.capacity + RedisCommandWriter.capacity(of: request)
      buffer.writeCommand(capacity: capacity) { writer in
        writer.bytes(PlainClaim.head)
        keys.write(request.id, to: &writer)
        writer.plainClaim(request, claim)
      }
    }
    appended(
      Pending(waiter: waiter, deadline: deadline, sentAt: now, kind: .plainClaim(claim)), of: request.id,
      awaitsReplicas: true)
    return true
  }

  /// Reads the reply to a claim without a script.
  ///
  /// If Redis' clock was set before the claim arrived, as later replies of that time have shown, the lease of the
  /// record begins too early. The script then begins it anew: the record is its owner's.
  func plainReply(
    _ reply: borrowing HiredisReply, to claim: PlainClaim, sentAt: BootInstant, at now: BootInstant
  ) -> ScriptReply {
    guard reply.kind == .error else {
      var plain = ScriptReply(reply, to: claim, now: clock.estimate(at: now) ?? claim.firstSeen)
      if case .done = plain.ending, let sent = clock.estimate(at: sentAt), claim.since < sent {
        // Whoever gets no reply to the script has to give the record back.
        plain.ending = .lost("Redis' clock was set while the claim was on its way")
      }
      return plain
    }
    let text = reply.withBytes { String(decoding: $0, as: UTF8.self) }
    if RedisRefusal.isSyntaxError(text) { mayClaimPlainly = false }
    return ScriptReply(ending: .refused(text), plain: claim)
  }

  /// Ends the lost connections to the same run of the same server. A claim without a script that one of them has not
  /// read by then claims nothing any more, and what it has read comes before all commands of this one.
  func endEarlierConnections(_ present: RedisSession?) {
    session = present
    mayClaimPlainly = present != nil
    guard let present else {
      if sessions.areOpen { subscriber.warnings.warnOfOpenConnections() }
      return
    }
    for client in sessions.open(at: present.run) {
      query(RedisSession.ending(client)) { [self] reply in
        switch reply {
        case .integer?: sessions.ended(RedisSession(run: present.run, client: client))
        case .error?:
          mayClaimPlainly = false
          subscriber.warnings.warnOfOpenConnections()
        default: break
        }
      }
    }
  }

  /// Takes the loss of this connection, with the commands that were written to it.
  func left(with commands: some Sequence<Pending>) {
    guard let session else { return }
    self.session = nil
    if commands.contains(where: \.isPlainClaim) { sessions.left(session) }
  }
}

import Idempotency

/// The times by the store's clock that a command is given.
struct RedisTimes {
  /// The call's deadline.
  let deadline: StoreInstant
  /// The present time, which the script then does not read; `nil` if it does.
  let present: StoreInstant?
}

/// Commands that cost Redis less under load, and the end of what an earlier connection has left of them.
extension RedisPipeline {
  /// The maximum number of servers whose last connection is remembered.
  private static let maxSessions = 16

  /// Returns an estimate of the store's time that is never behind it; `nil` if the connection is under no load, or if
  /// Redis' time is as old as that.
  func loadedTime(at now: BootInstant, maxAge: Milliseconds) -> StoreInstant? {
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
      let since = loadedTime(at: now, maxAge: settings.load.maxClaimAge),
      let firstSeen = clock.estimate(at: now)
    else { return false }
    let claim = PlainClaim(firstSeen: firstSeen, since: since, attempt: firstAttempt)
    link.append { buffer in
      let capacity = PlainClaim.head.count + keys.capacity + RedisCommandWriter.capacity(of: request)
      buffer.writeCommand(capacity: capacity) { writer in
        writer.bytes(PlainClaim.head)
        keys.write(request.id, to: &writer)
        writer.plainClaim(request, claim)
      }
    }
    wrote(
      Pending(waiter: waiter, deadline: deadline, sentAt: now, kind: .plain(claim)), awaitsReplicas: true)
    return true
  }

  /// Reads the reply to a claim without a script.
  func plainReply(_ reply: borrowing HiredisReply, to claim: PlainClaim, at now: BootInstant) -> ScriptReply {
    guard reply.kind == .error else {
      return ScriptReply(reply, to: claim, now: clock.estimate(at: now) ?? claim.firstSeen)
    }
    let text = reply.withBytes { String(decoding: $0, as: UTF8.self) }
    if RedisRefusal.isSyntaxError(text) { mayClaimPlainly = false }
    return ScriptReply(ending: .refused(text), plain: claim)
  }

  /// Ends the connection before this one, if this is the same run of the same server. A claim without a script that it
  /// has not read by then claims nothing any more, and what it has read comes before all commands of this connection.
  func endEarlierConnection(_ present: RedisSession?) {
    mayClaimPlainly = present != nil
    guard let present else { return }
    if let earlier = sessions.updateValue(present.client, forKey: present.run), earlier != present.client {
      query(RedisSession.ending(earlier)) { [self] reply in
        if case .error? = reply { mayClaimPlainly = false }
      }
    }
    if sessions.count > Self.maxSessions { sessions = [present.run: present.client] }
  }
}

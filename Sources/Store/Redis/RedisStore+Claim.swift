import Idempotency
import Platform
import Wire

extension RedisStore {
  /// Claims a record. One copy of the command is written without a task; a task continues the claim if there is no
  /// connection yet, or if the reply is not final. Claims that are to be written at once share one (`SharedClaims`).
  public func startClaim(_ request: ClaimRequest, onReply: @escaping @Sendable (ClaimReply) -> Void) {
    guard !nodes.shared.join(request, onReply) else { return }
    send(nodes.shared.leader(request, onReply))
  }

  private func send(_ asked: ClaimCall) {
    // Sent without the right to take a record over, a grant has not taken one over.
    let call = asked.with(permitted(asked.request))
    let firstAttempt = subscriber.epoch.firstAttempt
    let isWritten = nodes.startClaim(call.request) {
      $0.claim(call.request, until: $1, firstAttempt: firstAttempt)
    } onReply: { reply, copies in
      received(reply, copies, to: call)
    }
    if isWritten {
      nodes.shared.appended(call)
    } else {
      claimInTask(call, after: nil, mayHaveTakenOver: false)
    }
  }

  private func deliver(_ reply: ClaimReply, to call: ClaimCall) {
    switch reply {
    case .success(.granted(let claim)):
      invariant(
        claim.owner == call.request.owner && claim.id == call.request.id,
        "a claim is granted to another delivery")
      nodes.keeper.granted(claim)
    case .failure(.fateUnknown): nodes.keeper.mayBeGranted(call.request)
    case .failure(.unreadable): nodes.keeper.foundUnreadable(call.request.id)
    case .success, .failure: break
    }
    call.onReply(reply)
    for follower in nodes.shared.ended(call) {
      if let reply = reply.forFollower { follower.onReply(reply) } else { send(withoutTakeOver(follower)) }
    }
  }

  /// Returns a claim for a command of its own, after the shared one gave no recorded outcome. It takes no record over:
  /// this process may have become the holder of the record's outcome since.
  private func withoutTakeOver(_ call: ClaimCall) -> ClaimCall {
    .alone(call.request.changed(takeOver: .never), call.onReply)
  }

  @inline(never)
  private func received(_ reply: ScriptReply, _ copies: CommandAttempts, to call: ClaimCall) {
    let request = call.request
    var copies = copies
    do throws(StoreError) {
      guard try copies.ended(reply.ending) else {
        return claimInTask(call, after: copies, mayHaveTakenOver: request.takeOver != .never)
      }
      guard let outcome = try finalOutcome(of: request, reply) else { return resolveInTask(reply, of: call) }
      deliver(.success(outcome), to: call)
    } catch {
      deliver(.failure(error), to: call)
    }
  }

  /// Returns the outcome that a reply is; `nil` if that needs a task: for a response elsewhere, or a claim to be given
  /// back.
  private func finalOutcome(
    of request: ClaimRequest, _ reply: ScriptReply
  ) throws(StoreError) -> ClaimOutcome? {
    guard reply.responseKey == nil, reply.shortage == nil else { return nil }
    let outcome = try outcome(of: request, reply)
    guard !isTooEarly(outcome, of: request) else { return nil }
    guard outcome.encodedOutcome != nil else { return outcome }
    return try codec.decodedOnLoop(outcome, to: request)
  }

  private func resolveInTask(_ reply: ScriptReply, of call: ClaimCall) {
    inTask(call) { () throws(StoreError) in
      if let outcome = try await resolved(reply, of: call.request) { return outcome }
      return try await claim(call.request, after: nil, mayHaveTakenOver: false)
    }
  }

  private func claimInTask(_ call: ClaimCall, after copies: CommandAttempts?, mayHaveTakenOver: Bool) {
    inTask(call) { () throws(StoreError) in
      try await claim(call.request, after: copies, mayHaveTakenOver: mayHaveTakenOver)
    }
  }

  private func inTask(
    _ call: ClaimCall, _ body: @escaping @Sendable () async throws(StoreError) -> ClaimOutcome
  ) {
    nodes.context.task { deliver(await ClaimReply(awaiting: body), to: call) }
  }

  /// Returns the outcome of a claim, with the response if that stands under a key of its own. If that cannot be read
  /// now, the claim is refused: the record is completed. Returns `nil` if the record has changed since: claim it again.
  private func resolved(
    _ reply: ScriptReply, of request: ClaimRequest
  ) async throws(StoreError) -> ClaimOutcome? {
    if let shortage = reply.shortage {
      try await giveBack(try outcome(of: request, reply), of: request, because: shortage)
      throw .refused(shortage)
    }
    do throws(StoreError) {
      let reply = try await withResponse(reply, of: request.id, for: request.reader)
      guard !reply.isOfReading else { return nil }
      let outcome = try outcome(of: request, reply)
      if isTooEarly(outcome, of: request) {
        let reason = "Redis' clock was set, or another server has taken over"
        try await giveBack(outcome, of: request, because: reason)
        throw .refused(reason)
      }
      guard outcome.encodedOutcome != nil else { return outcome }
      return try await codec.decoded(outcome, to: request)
    } catch {
      if case .unavailable(let reason) = error { throw .refused(reason) }
      throw error
    }
  }

  /// Claims a record in a task, after earlier copies, one of which may have taken the record over.
  ///
  /// If a repeated claim finds the record taken, an earlier copy may still be granted it afterwards, with no task to
  /// end it (Tests/Model/claim.pml, EARLY_LEAVE). So such a reply is used only after the deadline of all copies, when
  /// the claim is repeated.
  private func claim(
    _ request: ClaimRequest, after copies: CommandAttempts?, mayHaveTakenOver: Bool
  ) async throws(StoreError) -> ClaimOutcome {
    var mayHaveTakenOver = mayHaveTakenOver
    let (outcome, copiedUntil) = try await claimOnce(request, after: copies, &mayHaveTakenOver)
    guard outcome.mayBeGrantedLater, let copiedUntil else { return outcome }
    await nodes.waitUntilPast(copiedUntil)
    let again: (outcome: ClaimOutcome, copiedUntil: BootInstant?)
    do {
      again = try await claimOnce(request, after: nil, &mayHaveTakenOver)
    } catch {
      switch error {
      case .unavailable(let reason), .refused(let reason): throw .fateUnknown(reason)
      case .busy, .fateUnknown, .unreadable: throw error
      }
    }
    guard again.outcome.mayBeGrantedLater, let copiedUntil = again.copiedUntil else { return again.outcome }
    await nodes.waitUntilPast(copiedUntil)
    throw .fateUnknown("the connection to Redis was lost twice during one claim")
  }

  /// Returns the outcome of a claim, and the time until which another copy of its command may be executed. A grant has
  /// taken no record over if no copy was written that may.
  private func claimOnce(
    _ request: ClaimRequest, after copies: CommandAttempts?, _ mayHaveTakenOver: inout Bool
  ) async throws(StoreError) -> (outcome: ClaimOutcome, copiedUntil: BootInstant?) {
    let capacity = RedisCommandWriter.capacity(of: request)
    var (copies, copiedUntil) = (copies, BootInstant?.none)
    while true {
      var mayTakeOver = false
      let reply = try await nodes.run(.claim, .record(request.id), capacity: capacity, after: copies) {
        let written = permitted(request)
        if written.takeOver != .never { mayTakeOver = true }
        $0.claim(written, until: $1, firstAttempt: subscriber.epoch.firstAttempt)
      }
      if mayTakeOver { mayHaveTakenOver = true }
      copiedUntil = reply.copiedUntil ?? copiedUntil
      let judged = mayHaveTakenOver ? request : request.changed(takeOver: .never)
      if let outcome = try await resolved(reply, of: judged) { return (outcome, copiedUntil) }
      copies = nil
    }
  }

  /// Gives back a claim that too few replicas have. A record that it made is deleted: nothing was run. If that fails,
  /// the claim counts as one whose reply was lost. A record that it may have taken over stays unknown.
  private func giveBack(
    _ outcome: ClaimOutcome, of request: ClaimRequest, because shortage: String
  ) async throws(StoreError) {
    guard case .granted(let claim) = outcome else { return }
    if let copiedUntil = claim.copiedUntil { await nodes.waitUntilPast(copiedUntil) }
    if claim.followsUnknown, request.takeOver != .never {
      // Without a reply its lease lapses, which has the same effect.
      _ = try? await markUnknown(claim, because: nil)
      return
    }
    do throws(StoreError) {
      _ = try await release(claim, claim.unusedRelease(keeping: request.unusedRelease))
    } catch {
      throw .fateUnknown(shortage)
    }
  }
}

extension RedisStore {
  /// Takes no record over for a while after another server has taken over or its clock was set
  /// (`RedisAlarm.mayTakeOver`; Tests/Model/claim.pml, NO_ERA).
  private func permitted(_ request: ClaimRequest) -> ClaimRequest {
    mayTakeOver(request) ? request : request.changed(takeOver: .never)
  }

  private func mayTakeOver(_ request: ClaimRequest) -> Bool {
    guard let settle = request.takeOver.settle else { return true }
    return subscriber.alarm.mayTakeOver(after: max(request.lease, settle))
  }

  /// Whether a claim has taken a record over by a clock that, as its own reply shows, was set.
  private func isTooEarly(_ outcome: ClaimOutcome, of request: ClaimRequest) -> Bool {
    guard case .granted(let claim) = outcome, claim.followsUnknown else { return false }
    return !mayTakeOver(request)
  }
}

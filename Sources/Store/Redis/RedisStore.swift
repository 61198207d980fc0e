import Idempotency
import Logging
import NIOCore
import Platform

/// A record store in Redis, with one connection per event loop and server, and a script per call. Claims under load
/// begin without one.
///
/// Confined to the loop of its context. A command takes at most `RedisEndpointSettings.timeout`, and a call is one
/// command, or two where a response has a key of its own. A claim whose connection is lost takes at most twice as long,
/// and one that has shared the command of another in vain as long again. A stall of this process is not counted for a
/// claim that Redis refused as late.
public struct RedisStore: RecordStore {
  let nodes: RedisNodes
  let subscriber: RedisSubscriber
  let codec: OutcomeCodec

  /// Creates the store, which begins to connect at once.
  ///
  /// - Parameters:
  ///   - codec: The form in which outcomes are stored.
  ///   - didWait: Takes the duration of each wait for replicas, in microseconds, on the store's loop.
  public init(
    context: EventLoopContext, settings: RedisEndpointSettings, logger: Logger, subscriber: RedisSubscriber,
    codec: OutcomeCodec = .plain, didWait: @escaping @Sendable (Int64) -> Void = { _ in }
  ) {
    let nodes = RedisNodes(
      context: context, settings: settings, logger: logger, subscriber: subscriber,
      counters: RedisCounters(didWait: didWait))
    self.nodes = nodes
    self.subscriber = subscriber
    self.codec = codec
    subscriber.enlist(nodes)
    context.loop.execute { nodes.start() }
  }

  var keys: RedisKeys { nodes.keys }

  /// The counters of this loop's connections. Safe from any thread.
  public var counters: RedisCounters { nodes.counters }

  /// Allows claims, which `awaitsAdmission` has held back. Safe from any thread.
  public func admit() {
    nodes.context.loop.execute { [nodes] in nodes.admit(unless: nil) }
  }

  /// Refuses every claim, for the given reason. Safe from any thread.
  public func refuseAdmission(_ reason: String) {
    nodes.context.loop.execute { [nodes] in nodes.admit(unless: reason) }
  }

  /// Closes the connection. Calls that wait fail. Safe from any thread.
  public func close() {
    nodes.context.loop.execute { [nodes] in nodes.close() }
  }

  /// Returns if Redis replies now, and throws an error otherwise.
  public func ping() async throws(StoreError) {
    _ = try await nodes.run(.clock, .any)
  }

  /// Claims a record. One copy of the command is written without a task; a task continues the claim if there is no
  /// connection yet, or if the reply is not final. Claims of one key and payload that are to be written at once share
  /// one command (`SharedClaims`).
  public func startClaim(_ request: ClaimRequest, onReply: @escaping @Sendable (ClaimReply) -> Void) {
    guard !nodes.shared.join(request, onReply) else { return }
    start(nodes.shared.call(request, onReply))
  }

  private func start(_ call: ClaimCall) {
    let firstAttempt = subscriber.epoch.firstAttempt
    let isWritten = nodes.startClaim(call.request, firstAttempt: firstAttempt) {
      $0.claim(permitted(call.request), until: $1.deadline, firstAttempt: firstAttempt)
    } onReply: { reply, copies in
      received(reply, copies, to: call)
    }
    if isWritten { nodes.shared.appended(call) } else { continueClaim(call, after: nil) }
  }

  /// Ends a claim, and those that have shared its command.
  private func end(_ call: ClaimCall, with reply: ClaimReply) {
    call.onReply(reply)
    for follower in nodes.shared.ended(call) {
      if let reply = reply.forFollower { follower.onReply(reply) } else { start(anew(follower)) }
    }
  }

  /// Returns a claim that has shared a command in vain. It takes no record over: its caller's leave for that is of the
  /// time when it began, and this process may have become the holder of the record's outcome since.
  private func anew(_ call: ClaimCall) -> ClaimCall {
    ClaimCall(request: call.request.changed(takeOver: .never), onReply: call.onReply)
  }

  /// Returns the request in its present form, which takes no record over for a while after another server has taken
  /// over or its clock was set (`RedisAlarm.mayTakeOver`; Tests/Model/claim.pml, NO_ERA).
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

  @inline(never)
  private func received(_ reply: ScriptReply, _ copies: CommandAttempts, to call: ClaimCall) {
    let request = call.request
    var copies = copies
    do throws(StoreError) {
      let isUndecided = reply.isOfAnotherPayload(than: request)
      if try copies.ended(isUndecided ? .undecided : reply.ending) {
        guard reply.needsResponse || reply.shortage != nil else {
          let outcome = try outcome(of: request, reply)
          if isTooEarly(outcome, of: request) { return finish(call, reply) }
          guard outcome.encodedOutcome != nil else { return end(call, with: .success(outcome)) }
          if let outcome = try codec.decodedOnLoop(outcome, to: request) {
            return end(call, with: .success(outcome))
          }
          return finish(call, reply)
        }
        return finish(call, reply)
      }
    } catch {
      return end(call, with: .failure(error))
    }
    continueClaim(call, after: copies)
  }

  private func finish(_ call: ClaimCall, _ reply: ScriptReply) {
    inTask(call) { () throws(StoreError) in try await finished(call.request, reply) }
  }

  private func continueClaim(_ call: ClaimCall, after copies: CommandAttempts?) {
    inTask(call) { () throws(StoreError) in try await claim(call.request, after: copies) }
  }

  private func inTask(
    _ call: ClaimCall, _ body: @escaping @Sendable () async throws(StoreError) -> ClaimOutcome
  ) {
    nodes.context.task {
      let reply: ClaimReply
      do throws(StoreError) {
        reply = .success(try await body())
      } catch {
        reply = .failure(error)
      }
      end(call, with: reply)
    }
  }

  /// Returns the outcome of a claim, with the response if that stands under a key of its own. If the response cannot be
  /// read now, the claim is refused: the record is known to be completed, so that its request must not run.
  private func finished(
    _ request: ClaimRequest, _ reply: ScriptReply
  ) async throws(StoreError) -> ClaimOutcome {
    if let shortage = reply.shortage {
      try await giveBack(try outcome(of: request, reply), of: request, because: shortage)
      throw .refused(shortage)
    }
    do throws(StoreError) {
      let outcome = try outcome(of: request, try await withResponse(reply, of: request.id))
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

  /// Claims a record in a task.
  ///
  /// If a repeated claim finds the record taken, an earlier copy of the command may still be granted it afterwards,
  /// with no task to end it (Tests/Model/claim.pml, EARLY_LEAVE). Such a reply is therefore used only after the
  /// deadline of all copies, when the claim is repeated.
  private func claim(
    _ request: ClaimRequest, after copies: CommandAttempts?
  ) async throws(StoreError) -> ClaimOutcome {
    let (outcome, copiedUntil) = try await claimOnce(request, after: copies)
    guard outcome.mayBeGrantedLater, let copiedUntil else { return outcome }
    await nodes.waitUntilPast(copiedUntil)
    let again: (outcome: ClaimOutcome, copiedUntil: BootInstant?)
    do {
      again = try await claimOnce(request)
    } catch {
      switch error {
      case .unavailable(let reason), .refused(let reason): throw .fateUnknown(reason)
      case .fateUnknown, .unreadable: throw error
      }
    }
    guard again.outcome.mayBeGrantedLater, let copiedUntil = again.copiedUntil else { return again.outcome }
    await nodes.waitUntilPast(copiedUntil)
    throw .fateUnknown("the connection to Redis was cut under a claim, time and again")
  }

  /// Returns the outcome of a claim, and the time until which another copy of its command may still be executed.
  private func claimOnce(
    _ request: ClaimRequest, after copies: CommandAttempts? = nil
  ) async throws(StoreError) -> (outcome: ClaimOutcome, copiedUntil: BootInstant?) {
    let capacity = RedisCommandWriter.capacity(of: request)
    let reply = try await nodes.run(.claim, .record(request.id), capacity: capacity, after: copies) {
      $0.claim(permitted(request), until: $1.deadline, firstAttempt: subscriber.epoch.firstAttempt)
    }
    return (try await finished(request, reply), reply.copiedUntil)
  }

  /// Gives back a claim that too few replicas have, since a failover would let another delivery have it, too. A record
  /// that it made is deleted: nothing was run. If that fails, the claim counts as one whose reply was lost. A record
  /// that it may have taken over from an owner whose outcome is unknown stays unknown.
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
      _ = try await release(claim, claim.onlyRejectedSoFar ? .deleted : .remembered)
    } catch {
      throw .fateUnknown(shortage)
    }
  }

  public func renew(_ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    let text = claim.fingerprint.recipe.text
    let reply = try await nodes.run(.renew, .record(claim.id), capacity: 640 + text.utf8.count) {
      writer, _ in
      writer.ownership(claim)
      writer.argument { $0.record(claim, span: claim.lease, recipe: text) }
      writer.timeToLive(claim.lease, claim.unknownRetention, claim.remember, over: claim.fence)
    }
    note(reply, of: claim)
    return try await outcome(of: reply, claim)
  }

  public func complete(
    _ claim: Claim, with completion: Completion
  ) async throws(StoreError) -> CompletionReply {
    guard codec.keepsAsIs(completion.outcome) else {
      let encoded = try await codec.encoded(completion, of: claim.id, claim.key)
      return try await complete(claim, with: completion, storing: encoded)
    }
    return try await complete(claim, with: completion, storing: completion)
  }

  /// - Parameter stored: The completion in the store's form.
  @inline(never)
  private func complete(
    _ claim: Claim, with completion: Completion, storing stored: Completion
  ) async throws(StoreError) -> CompletionReply {
    let reply = try await write(stored, of: claim)
    note(reply, of: claim)
    guard reply.isFirst else { return try await superseded(reply, stored, of: claim) }
    let record = CompletedRecord(
      outcome: completion.outcome, recordedAt: reply.now, expiresAt: reply.now + completion.retention,
      remaining: completion.retention, attempt: claim.attempt)
    return CompletionReply(outcome: .done, record: record)
  }

  /// The outcome of a completion that came too late or was repeated.
  @inline(never)
  private func superseded(
    _ reply: ScriptReply, _ stored: Completion, of claim: Claim
  ) async throws(StoreError) -> CompletionReply {
    let outcome = try await outcome(of: reply, claim)
    // Nothing else would delete the response of an owner that was superseded.
    if outcome != .done { eraseResponse(of: stored, claim) }
    return CompletionReply(outcome: outcome, record: nil)
  }

  @inline(never)
  private func write(
    _ completion: Completion, of claim: Claim
  ) async throws(StoreError) -> ScriptReply {
    let text = claim.fingerprint.recipe.text
    let kept = RedisCompletion(completion)
    let capacity = 768 + text.utf8.count + kept.capacity
    try await writeResponse(of: kept, claim.id, claim.owner)
    let reply = try await nodes.run(.complete, .record(claim.id), capacity: capacity) {
      writer, times in
      writer.owner(argument: claim.owner)
      writer.argument(Int64(claim.attempt))
      writer.argument { $0.record(claim, with: completion, kept, recipe: text) }
      writer.timeToLive(completion.lifetime, over: claim.fence)
      writer.argument(claim.firstSeen.milliseconds)
      writer.argument { if let present = times.present { $0.number(present.milliseconds) } }
    }
    // A Redis that has lost the claim since may have lost the response, too, or never had it.
    if reply.isOfLostClaim { try await writeResponse(of: kept, claim.id, claim.owner) }
    return reply
  }

  /// Writes a response that gets a key of its own. The script follows once it is there: a record must not name a
  /// response that Redis has refused, and while a slot moves, either command may be sent elsewhere.
  @inline(never)
  func writeResponse(
    of kept: RedisCompletion, _ id: RecordID, _ owner: OwnerToken
  ) async throws(StoreError) {
    if let write = kept.ownKeyWrite(keys, id, owner) { _ = try await nodes.run(write, id) }
  }

  /// Counts a live claim that Redis had lost.
  @inline(never)
  private func note(_ reply: ScriptReply, of claim: Claim) {
    guard reply.isOfLostClaim else { return }
    nodes.counters.suspected()
    subscriber.alarm.logSuspect(claim.id)
  }

  private func eraseResponse(of completion: Completion, _ claim: Claim) {
    guard RedisCompletion(completion).place == .ownKey else { return }
    let place = RedisRecord.responseKey(claim.owner)
    nodes.send(RedisPlainCommand("DEL", keys.response(claim.id, place)), claim.id)
  }

  public func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome {
    let reply = try await nodes.run(.release, .record(claim.id), capacity: 128) { writer, _ in
      writer.owner(argument: claim.owner)
      writer.argument(release == .deleted ? "deleted" : "remembered")
    }
    return try await outcome(of: reply, claim)
  }

  public func markUnknown(
    _ claim: Claim, because cause: LossCause?
  ) async throws(StoreError) -> OwnerOutcome {
    let text = claim.fingerprint.recipe.text
    let reply = try await nodes.run(.markUnknown, .record(claim.id), capacity: 640 + text.utf8.count) {
      writer, _ in
      writer.ownership(claim)
      writer.argument { $0.record(claim, span: 0, recipe: text, cause: cause) }
      writer.timeToLive(claim.unknownRetention, claim.remember, over: claim.fence)
    }
    return try await outcome(of: reply, claim)
  }

  public func find(_ id: RecordID, opening key: IdempotencyKey?) async throws(StoreError) -> Standing {
    let reply = try await withResponse(try await nodes.run(.find, .record(id)), of: id)
    guard case .result(let result) = reply.ending else { return .absent }
    return try await codec.decoded(
      try result.standing(now: reply.now, response: reply.response), of: id, key)
  }

  public func inspect(_ id: RecordID) async throws(StoreError) -> RecordView? {
    let reply = try await withResponse(try await nodes.run(.find, .record(id)), of: id)
    guard case .result(let result) = reply.ending else { return nil }
    let standing = try await codec.decoded(
      try result.standing(now: reply.now, response: reply.response), of: id, nil)
    guard standing != .absent else { return nil }
    return result.record?.view(id, now: reply.now, standing: standing)
  }

  public func watch(_ id: RecordID) async throws(StoreError) -> RedisWatch {
    try await subscriber.watch(id, on: nodes.context)
  }
}

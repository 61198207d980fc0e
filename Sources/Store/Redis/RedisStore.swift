import Idempotency
import Logging
import Loop
import NIOCore

/// A record store in one standalone Redis, with one connection per event loop and one script per call.
///
/// Confined to the loop of its context. A call takes at most `RedisEndpointSettings.timeout`; a claim whose connection
/// is lost takes at most twice that. A stall of this process is not counted for a claim that Redis refused as late.
public struct RedisStore: RecordStore {
  let pipeline: RedisPipeline
  let hub: RedisHub

  /// Creates the store, which begins to connect at once.
  public init(context: EventLoopContext, settings: RedisEndpointSettings, logger: Logger, hub: RedisHub) {
    let link = RedisLink(context: context, settings: settings, carriesRecords: true, logger: logger)
    let pipeline = RedisPipeline(context: context, link: link, hub: hub)
    self.pipeline = pipeline
    self.hub = hub
    hub.enlist(pipeline)
    context.loop.execute { pipeline.start() }
  }

  var keys: RedisKeys { pipeline.keys }

  /// The counters of this loop's connection. Safe from any thread.
  public var counters: RedisCounters { pipeline.link.counters }

  /// Allows claims, which `awaitsAdmission` has held back. Safe from any thread.
  public func admit() {
    pipeline.context.loop.execute { [pipeline] in pipeline.admit(unless: nil) }
  }

  /// Refuses every claim, for the given reason. Safe from any thread.
  public func refuseAdmission(_ reason: String) {
    pipeline.context.loop.execute { [pipeline] in pipeline.admit(unless: reason) }
  }

  /// Closes the connection. Calls that wait fail. Safe from any thread.
  public func close() {
    pipeline.context.loop.execute { [pipeline] in pipeline.close() }
  }

  /// Returns if Redis replies now, and throws an error otherwise.
  public func ping() async throws(StoreError) {
    _ = try await pipeline.ask(.clock, nil)
  }

  /// Claims a record, in at most twice the time-out of a call. One copy of the command is written without a task; a
  /// task continues the claim if there is no connection yet, or if the reply is not final.
  public func startClaim(_ request: ClaimRequest, onReply: @escaping @Sendable (ClaimReply) -> Void) {
    let capacity = RedisCommandWriter.capacity(of: request)
    let isWritten = pipeline.askOnce(.claim, request.id, capacity: capacity) {
      $0.claim(request, until: $1)
    } tell: { answer, copies in
      received(answer, copies, to: request, onReply)
    }
    if !isWritten { continueClaim(request, after: nil, onReply) }
  }

  @inline(never)
  private func received(
    _ answer: RedisAnswer, _ copies: RedisCopies, to request: ClaimRequest,
    _ onReply: @escaping @Sendable (ClaimReply) -> Void
  ) {
    var copies = copies
    do throws(StoreError) {
      if try copies.answered(answer.ending) { return onReply(.success(try outcome(of: request, answer))) }
    } catch {
      return onReply(.failure(error))
    }
    continueClaim(request, after: copies, onReply)
  }

  private func continueClaim(
    _ request: ClaimRequest, after copies: RedisCopies?, _ onReply: @escaping @Sendable (ClaimReply) -> Void
  ) {
    pipeline.context.task {
      let reply: ClaimReply
      do throws(StoreError) {
        reply = .success(try await claim(request, after: copies))
      } catch {
        reply = .failure(error)
      }
      onReply(reply)
    }
  }

  /// Claims a record in a task.
  ///
  /// If a repeated claim finds the record taken, an earlier copy of the command may still be granted it afterwards,
  /// with no task to end it (Tests/Model/claim.pml, EARLY_LEAVE). Such a reply is therefore used only after the
  /// deadline of all copies, when the claim is repeated.
  private func claim(
    _ request: ClaimRequest, after copies: RedisCopies?
  ) async throws(StoreError) -> ClaimOutcome {
    let (outcome, copiedUntil) = try await claimOnce(request, after: copies)
    guard outcome.leavesRoom, let copiedUntil else { return outcome }
    await pipeline.outlast(copiedUntil)
    let again: (outcome: ClaimOutcome, copiedUntil: BootInstant?)
    do {
      again = try await claimOnce(request)
    } catch {
      if case .unavailable(let reason) = error { throw .fateUnknown(reason) }
      throw error
    }
    guard again.outcome.leavesRoom, let copiedUntil = again.copiedUntil else { return again.outcome }
    await pipeline.outlast(copiedUntil)
    throw .fateUnknown("the connection to Redis was cut under a claim, time and again")
  }

  /// Returns the outcome of a claim, and the time until which another copy of its command may still be executed.
  private func claimOnce(
    _ request: ClaimRequest, after copies: RedisCopies? = nil
  ) async throws(StoreError) -> (outcome: ClaimOutcome, copiedUntil: BootInstant?) {
    let capacity = RedisCommandWriter.capacity(of: request)
    let answer = try await pipeline.ask(.claim, request.id, capacity: capacity, after: copies) {
      $0.claim(request, until: $1)
    }
    let isCopied = answer.copiedUntil.nanoseconds > 0
    return (try outcome(of: request, answer), isCopied ? answer.copiedUntil : nil)
  }

  public func renew(_ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    let text = claim.fingerprint.recipe.text
    let answer = try await pipeline.ask(.renew, claim.id, capacity: 512 + text.utf8.count) { writer, _ in
      writer.ownership(claim)
      writer.argument { $0.record(claim, span: claim.lease, recipe: text) }
      writer.timeToLive(claim.lease, claim.unknownRetention, claim.remember, over: claim.fence)
    }
    return try outcome(of: answer)
  }

  public func complete(
    _ claim: Claim, with completion: Completion
  ) async throws(StoreError) -> CompletionReply {
    let answer = try await write(completion, of: claim)
    guard case .done = answer.ending else {
      return CompletionReply(outcome: try outcome(of: answer), record: nil)
    }
    let record = CompletedRecord(
      outcome: completion.outcome, recordedAt: answer.now, expiresAt: answer.now + completion.retention,
      remaining: completion.retention, attempt: claim.attempt)
    return CompletionReply(outcome: .done, record: record)
  }

  private func write(
    _ completion: Completion, of claim: Claim
  ) async throws(StoreError) -> RedisAnswer {
    let text = claim.fingerprint.recipe.text
    let kept = RedisCompletion(completion)
    let capacity = 640 + text.utf8.count + kept.capacity
    return try await pipeline.ask(.complete, claim.id, capacity: capacity) { writer, _ in
      writer.ownership(claim)
      writer.argument {
        $0.record(
          claim, span: completion.retention, remember: completion.remember, recipe: text,
          isAnswerKept: kept.isKept)
        kept.writeEnd(to: &$0)
      }
      writer.timeToLive(max(completion.retention, completion.remember), over: claim.fence)
      writer.timeToLive(completion.retention)
      kept.writeAnswer(to: &writer)
    }
  }

  public func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome {
    let answer = try await pipeline.ask(.release, claim.id, capacity: 128) { writer, _ in
      writer.token(argument: claim.owner)
      writer.argument(release == .deleted ? "deleted" : "remembered")
    }
    return try outcome(of: answer)
  }

  public func markUnknown(_ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    let text = claim.fingerprint.recipe.text
    let answer = try await pipeline.ask(.markUnknown, claim.id, capacity: 512 + text.utf8.count) {
      writer, _ in
      writer.ownership(claim)
      writer.argument { $0.record(claim, span: 0, recipe: text) }
      writer.timeToLive(claim.unknownRetention, claim.remember, over: claim.fence)
    }
    return try outcome(of: answer)
  }

  public func find(_ id: RecordID) async throws(StoreError) -> Standing {
    let answer = try await pipeline.ask(.find, id)
    guard case .told(let told) = answer.ending else { return .absent }
    return try told.standing(now: answer.now)
  }

  public func forget(_ id: RecordID, fence: Milliseconds) async throws(StoreError) -> Bool {
    let token = OwnerToken.random()
    let capacity = 256 + keys.invalidations.utf8.count
    let answer = try await pipeline.ask(.forget, id, capacity: capacity) { writer, deadline in
      writer.token(argument: token)
      writer.argument { $0.span(fence) }
      writer.argument(keys.invalidations)
      writer.argument { $0.digest(id.digest) }
      writer.argument(deadline.milliseconds)
    }
    if case .done = answer.ending { return true }
    return false
  }

  public func resolve(
    _ id: RecordID, as resolution: Resolution, amending: Bool
  ) async throws(StoreError) -> OwnerOutcome {
    let token = OwnerToken.ofOperator()
    var completion: Completion?
    if case .applied(let applied) = resolution { completion = applied }
    let kept = completion.map(RedisCompletion.init)
    let capacity = 640 + (kept?.capacity ?? 0) + keys.invalidations.utf8.count
    let answer = try await pipeline.ask(.resolve, id, capacity: capacity) { writer, deadline in
      writer.token(argument: token)
      writer.argument(completion == nil ? "released" : "completed")
      writer.argument { $0.span(completion?.retention ?? 0) }
      writer.argument { $0.span(completion?.remember ?? 0) }
      writer.argument { kept?.writeEnd(to: &$0) }
      writer.argument(kept?.isKept == true ? "k" : "")
      if let kept { kept.writeAnswer(to: &writer) } else { writer.argument("") }
      writer.argument(keys.invalidations)
      writer.argument { $0.digest(id.digest) }
      writer.argument(amending ? "amend" : "")
      writer.argument(deadline.milliseconds)
    }
    return try outcome(of: answer)
  }

  public func watch(_ id: RecordID) async throws(StoreError) -> RedisWatch {
    try await hub.watch(id, on: pipeline.context)
  }
}

import Idempotency
import Logging
import NIOCore
import Platform

/// A record store in Redis, with one connection per event loop and server, and a script per call.
///
/// Confined to the loop of its context. A command takes at most `RedisEndpointSettings.timeout`, and a call is one
/// command, or two where a response has a key of its own. A claim whose connection is lost, or that has shared a
/// command in vain, takes as long again.
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
    nodes.context.loop.execute { [nodes] in nodes.take(.accepted) }
  }

  /// Refuses every claim, for the given reason. Safe from any thread.
  public func refuseAdmission(_ reason: String) {
    nodes.context.loop.execute { [nodes] in nodes.take(.refused(reason)) }
  }

  /// Closes the connection. Calls that wait fail. Safe from any thread.
  public func close() {
    nodes.context.loop.execute { [nodes] in nodes.close() }
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
    let outcome = try await outcome(of: reply, claim)
    if outcome == .done { nodes.keeper.renewed(claim, at: reply.now) }
    return outcome
  }

  /// Has one frame for nearly all completions, which are stored as they are, in their record.
  public func complete(
    _ claim: Claim, with completion: Completion
  ) async throws(StoreError) -> CompletionReply {
    let kept = RedisCompletion(completion)
    guard codec.keepsAsIs(completion.outcome), kept.place != .ownKey else {
      return try await completeEncoded(claim, with: completion)
    }
    let reply = try await write(completion, kept, of: claim)
    return try await completed(reply, claim, with: completion, storing: completion)
  }

  /// Completes the record in the store's form, without the response if that does not get to a Redis that answers
  /// others: it would not get there the next time either.
  @inline(never)
  private func completeEncoded(
    _ claim: Claim, with completion: Completion
  ) async throws(StoreError) -> CompletionReply {
    var completion = completion
    var stored = try await codec.encoded(completion, of: claim.id, claim.key)
    let kept = RedisCompletion(stored)
    let reply: ScriptReply
    do throws(StoreError) {
      reply = try await afterResponse(of: kept, claim.id, claim.owner, turn: claim.turn) {
        () async throws(StoreError) in
        try await write(stored, kept, of: claim)
      }
    } catch {
      guard case .busy(let reason) = error, kept.place == .ownKey else { throw error }
      nodes.logger.debug(
        "a response is recorded without its body, which did not reach Redis in time",
        metadata: ["record": "\(claim.id.text)", "reason": "\(reason)"])
      completion.outcome = completion.outcome.withoutResponse
      stored.outcome = stored.outcome.withoutResponse
      reply = try await write(stored, RedisCompletion(stored), of: claim)
    }
    return try await completed(reply, claim, with: completion, storing: stored)
  }

  private func completed(
    _ reply: ScriptReply, _ claim: Claim, with completion: Completion, storing stored: Completion
  ) async throws(StoreError) -> CompletionReply {
    note(reply, of: claim)
    guard reply.isFirst else { return try await superseded(reply, stored, of: claim) }
    nodes.keeper.ended(claim)
    let record = CompletedRecord(
      outcome: completion.outcome, recordedAt: reply.now, expiresAt: reply.now + completion.retention,
      remaining: completion.retention, attempt: claim.attempt)
    return CompletionReply(outcome: .done, record: record)
  }

  @inline(never)
  private func superseded(
    _ reply: ScriptReply, _ stored: Completion, of claim: Claim
  ) async throws(StoreError) -> CompletionReply {
    let outcome = try await outcome(of: reply, claim)
    nodes.keeper.ended(claim, isOpen: outcome != .done)
    // Nothing else would delete the response of an owner that was superseded.
    if outcome != .done { eraseResponse(of: stored, claim) }
    return CompletionReply(outcome: outcome, record: nil)
  }

  private func write(
    _ completion: Completion, _ kept: RedisCompletion, of claim: Claim
  ) async throws(StoreError) -> ScriptReply {
    subscriber.alarm.recorded(for: completion.lifetime)
    let text = claim.fingerprint.recipe.text
    let capacity = 768 + text.utf8.count + kept.capacity
    return try await nodes.run(.complete, .record(claim.id), capacity: capacity) {
      writer, _ in
      writer.owner(argument: claim.owner)
      writer.argument(Int64(claim.attempt))
      writer.argument { $0.record(claim, with: completion, kept, recipe: text) }
      writer.timeToLive(completion.lifetime, over: claim.fence)
      writer.argument(claim.firstSeen.milliseconds)
      writer.argument { kept.writeOwnKeyEnd(claim.owner, to: &$0) }
    }
  }

  private static var maxResponseWrites: Int { 3 }

  /// Writes a response that gets a key of its own, and then its record by `script`: a record must not name a response
  /// that Redis has refused. Another server may have taken over between the two: without the response both are
  /// repeated.
  @inline(never)
  func afterResponse(
    of kept: RedisCompletion, _ id: RecordID, _ owner: OwnerToken, turn: Int = 0,
    _ script: () async throws(StoreError) -> ScriptReply
  ) async throws(StoreError) -> ScriptReply {
    guard kept.place == .ownKey else { return try await script() }
    for _ in 0..<Self.maxResponseWrites {
      try await writeResponse(of: kept, id, owner, turn: turn)
      let reply = try await script()
      if reply.result?.word != .bare { return reply }
    }
    throw .unavailable(
      "the response is not at the Redis that has its record, although it was just written there")
  }

  /// Writes a response that gets a key of its own: a large one over a connection of its own, by turns of the callers.
  private func writeResponse(
    of kept: RedisCompletion, _ id: RecordID, _ owner: OwnerToken, turn: Int
  ) async throws(StoreError) {
    guard let write = kept.ownKeyWrite(keys, id, owner) else { return }
    if RedisNodes.isLarge(write) {
      try await nodes.writeLarge(write, id, turn: turn)
    } else {
      _ = try await nodes.run(write, id)
    }
  }

  @inline(never)
  private func note(_ reply: ScriptReply, of claim: Claim) {
    guard reply.result?.word == .created else { return }
    nodes.counters.suspected()
    subscriber.alarm.logSuspect(claim.id)
  }

  private func eraseResponse(of completion: Completion, _ claim: Claim) {
    guard RedisCompletion(completion).place == .ownKey else { return }
    let place = RedisRecord.responseKey(claim.owner)
    nodes.send(RedisPlainCommand(["DEL", keys.response(claim.id, place)]), claim.id)
  }

  public func release(_ claim: Claim, _ release: Release) async throws(StoreError) -> OwnerOutcome {
    let reply = try await nodes.run(.release, .record(claim.id), capacity: 128) { writer, _ in
      writer.owner(argument: claim.owner)
      writer.argument(release.word)
    }
    let outcome = try await outcome(of: reply, claim)
    nodes.keeper.ended(claim, isOpen: outcome != .done)
    return outcome
  }

  public func markUnknown(
    _ claim: Claim, because cause: LossCause?
  ) async throws(StoreError) -> OwnerOutcome {
    let text = claim.fingerprint.recipe.text
    nodes.keeper.marksUnknown(claim)
    let reply = try await nodes.run(.markUnknown, .record(claim.id), capacity: 640 + text.utf8.count) {
      writer, _ in
      writer.ownership(claim)
      writer.argument { $0.record(claim, span: 0, recipe: text, cause: cause) }
      writer.timeToLive(claim.unknownRetention, claim.remember, over: claim.fence)
    }
    return try await outcome(of: reply, claim)
  }

  public func isDown(for id: RecordID) async -> Bool { await nodes.isDown(for: id) }

  public func find(_ id: RecordID, reading: RecordReading) async throws(StoreError) -> Standing {
    var reply = try await nodes.run(.find, .record(id))
    guard let result = reply.finalResult else { return .absent }
    guard case .response(let key, let reader) = reading else {
      return try result.standing(now: reply.now, response: nil).stateAlone
    }
    reply = try await withResponse(reply, of: id, for: reader)
    return try await codec.decoded(
      try result.standing(now: reply.now, response: reply.response), of: id, key, turn: reader?.turn ?? 0)
  }

  public func inspect(_ id: RecordID) async throws(StoreError) -> RecordView? {
    let reply = try await withResponse(try await nodes.run(.find, .record(id)), of: id)
    guard let result = reply.finalResult else { return nil }
    let standing = try await codec.decoded(
      try result.standing(now: reply.now, response: reply.response), of: id, nil)
    guard standing != .absent else { return nil }
    return result.record?.view(id, now: reply.now, standing: standing)
  }

  public func watch(_ id: RecordID) async throws(StoreError) -> RedisWatch {
    try await subscriber.watch(id, on: nodes.context)
  }
}

extension Release {
  fileprivate var word: String {
    switch self {
    case .remembered: "remembered"
    case .uncounted: "uncounted"
    case .deleted: "deleted"
    }
  }
}

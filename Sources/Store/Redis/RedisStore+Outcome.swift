import Idempotency
import Wire

extension RedisStore {
  @inline(never)
  func outcome(of request: ClaimRequest, _ reply: ScriptReply) throws(StoreError) -> ClaimOutcome {
    guard let result = reply.finalResult else { return .granted(Self.claim(request, reply, after: nil)) }
    if result.word == .mismatch { return .mismatch }
    let standing = try result.standing(now: reply.now, response: reply.response)
    guard let record = result.record else { throw .unreadable("a claim's reply has no record") }
    switch result.word {
    case .granted:
      return .granted(Self.claim(request, reply, after: record))
    case .recipe:
      guard let recipe = Recipe(text: record.recipe) else {
        throw .unreadable("the record's fingerprint was made by a recipe that this version does not know")
      }
      return .otherRecipe(recipe)
    case .standing, .again, .bare, .created, .erased, .fact, .hits, .late, .mismatch, .none, .unreadable,
      .view,
      .walked:
      return .taken(standing)
    }
  }

  @inline(never)
  func outcome(of reply: ScriptReply) throws(StoreError) -> OwnerOutcome {
    invariant(reply.shortage == nil, "a change counts that too few replicas have")
    guard let result = reply.finalResult, result.word != .again, result.word != .created,
      result.word != .erased
    else {
      return .done
    }
    return .lost(try result.standing(now: reply.now, response: reply.response))
  }

  func outcome(of reply: ScriptReply, _ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    if let record = reply.result?.record, record.owner != claim.owner,
      record.fingerprint != claim.fingerprint.text,
      record.standing(now: reply.now, response: nil) != .absent
    {
      return .replaced
    }
    return try await outcome(of: reply, claim.id, claim.key)
  }

  func outcome(
    of reply: ScriptReply, _ id: RecordID, _ key: IdempotencyKey? = nil
  ) async throws(StoreError) -> OwnerOutcome {
    try await codec.decoded(try outcome(of: try await withResponse(reply, of: id)), of: id, key)
  }

  /// Returns the reply with the response, if that stands under a key of its own. An operator may have amended or
  /// forgotten the record since, and its response is gone with it: without one, the record is read again.
  func withResponse(
    _ reply: ScriptReply, of id: RecordID, for reader: (any ResponseReader)? = nil
  ) async throws(StoreError) -> ScriptReply {
    var reply = reply
    while let place = reply.responseKey {
      if let response = try await response(at: place, of: id, for: reader) {
        reply.response = response
        return reply
      }
      let again = try await nodes.run(.find, .record(id))
      // The same record: Redis has evicted its response.
      guard again.responseKey != place else { return reply }
      reply = again
    }
    return reply
  }

  private func response(
    at place: String, of id: RecordID, for reader: (any ResponseReader)?
  ) async throws(StoreError) -> Outcome? {
    guard let bytes = try await nodes.readResponse(keys.response(id, place), of: id, for: reader) else {
      return nil
    }
    guard let response = RedisResponse.read(bytes) else { throw .unreadable(OutcomeCodec.otherFormat) }
    return response.outcome
  }

  /// Deletes a response that no record names any more. It would expire.
  func erase(after reply: ScriptReply, of id: RecordID) {
    guard reply.result?.word == .erased, let place = reply.result?.text, place != "-" else { return }
    nodes.send(RedisPlainCommand(["DEL", keys.response(id, place)]), id)
  }

  /// Creates a granted claim, after the record if there was one before.
  private static func claim(
    _ request: ClaimRequest, _ reply: ScriptReply, after record: RedisRecord?
  ) -> Claim {
    Claim(
      id: request.id, owner: request.owner, fingerprint: request.fingerprint,
      attempt: record?.attempt ?? 1, firstSeen: record?.firstSeen ?? reply.now,
      followsUnknown: record?.followsUnknown ?? false,
      onlyRejectedSoFar: record?.onlyRejectedSoFar ?? true, uncountedAttempts: record?.uncountedAttempts ?? 0,
      lease: request.lease,
      unknownRetention: request.unknownRetention, remember: request.remember,
      fence: Fence(until: record?.fencedUntil, now: reply.now), requestedAt: reply.sentAt,
      copiedUntil: reply.copiedUntil, key: request.key, attribution: request.attribution,
      turn: request.turn)
  }
}

extension ScriptReply {
  var responseKey: String? {
    result?.record?.responseKey(now: now)
  }

  var isOfReading: Bool { result.map { $0.word == .view || $0.word == .none } ?? false }
}

extension ClaimOutcome {
  /// Whether a copy of the claim that Redis executes after this reply may still be granted the record.
  var mayBeGrantedLater: Bool {
    switch self {
    case .granted, .taken(.completed): false
    case .taken, .mismatch, .otherRecipe: true
    }
  }
}

extension Fingerprint {
  fileprivate var text: String { "\(digest.text) \(recipe.text)" }
}

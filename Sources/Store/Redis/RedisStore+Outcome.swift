import Idempotency

/// The interpretation of the replies.
extension RedisStore {
  /// Returns the outcome of a claim.
  @inline(never)
  func outcome(of request: ClaimRequest, _ reply: ScriptReply) throws(StoreError) -> ClaimOutcome {
    guard case .result(let result) = reply.ending else {
      return .granted(Self.claim(request, reply, after: nil))
    }
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
    case .standing, .again, .created, .erased, .fact, .hits, .late, .mismatch, .none, .unreadable, .view,
      .walked:
      return .taken(standing)
    }
  }

  /// Returns the outcome of an owner's or an operator's command.
  @inline(never)
  func outcome(of reply: ScriptReply) throws(StoreError) -> OwnerOutcome {
    guard case .result(let result) = reply.ending, result.word != .again, result.word != .created,
      result.word != .erased
    else {
      return .done
    }
    return .lost(try result.standing(now: reply.now, response: reply.response))
  }

  /// Returns the outcome of an owner's command, with the response and decoded.
  func outcome(of reply: ScriptReply, _ claim: Claim) async throws(StoreError) -> OwnerOutcome {
    if case .result(let result) = reply.ending, let record = result.record, record.owner != claim.owner,
      record.fingerprint != claim.fingerprint.text,
      record.standing(now: reply.now, response: nil) != .absent
    {
      return .replaced
    }
    return try await outcome(of: reply, claim.id, claim.key)
  }

  /// Returns the outcome of an owner's or an operator's command, with the response and decoded.
  ///
  /// - Parameter key: The client's key, if it is known.
  func outcome(
    of reply: ScriptReply, _ id: RecordID, _ key: IdempotencyKey? = nil
  ) async throws(StoreError) -> OwnerOutcome {
    try await codec.decoded(try outcome(of: try await withResponse(reply, of: id)), of: id, key)
  }

  /// Returns the reply with the response, if that stands under a key of its own.
  func withResponse(_ reply: ScriptReply, of id: RecordID) async throws(StoreError) -> ScriptReply {
    guard case .result(let result) = reply.ending, let place = result.record?.responseKey(now: reply.now)
    else {
      return reply
    }
    var reply = reply
    if case .value(let bytes) = try await nodes.run(RedisPlainCommand("GET", keys.response(id, place)), id) {
      guard let response = RedisResponse.read(bytes) else { throw .unreadable(OutcomeCodec.otherFormat) }
      reply.response = response.outcome
    }
    return reply
  }

  /// Deletes a response that no record names any more. If that fails, it expires soon after its retention.
  func erase(after reply: ScriptReply, of id: RecordID) {
    guard case .result(let result) = reply.ending, result.word == .erased, let place = result.text,
      place != "-"
    else {
      return
    }
    nodes.send(RedisPlainCommand("DEL", keys.response(id, place)), id)
  }

  /// Creates a granted claim.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - reply: The reply.
  ///   - record: The record as it is now, if there was one before; otherwise `nil`.
  private static func claim(
    _ request: ClaimRequest, _ reply: ScriptReply, after record: RedisRecord?
  ) -> Claim {
    Claim(
      id: request.id, owner: request.owner, fingerprint: request.fingerprint,
      attempt: record?.attempt ?? reply.plain?.attempt ?? 1,
      firstSeen: record?.firstSeen ?? reply.plain?.firstSeen ?? reply.now,
      followsUnknown: record?.followsUnknown ?? false,
      onlyRejectedSoFar: record?.onlyRejectedSoFar ?? true, lease: request.lease,
      unknownRetention: request.unknownRetention, remember: request.remember,
      fence: Fence(until: record?.fencedUntil, now: reply.now), requestedAt: reply.sentAt,
      copiedUntil: reply.copiedUntil, key: request.key, attribution: request.attribution)
  }
}

extension ScriptReply {
  /// Whether the record's response stands under a key of its own.
  var needsResponse: Bool {
    guard case .result(let result) = ending else { return false }
    return result.record?.responseKey(now: now) != nil
  }
}

extension ClaimOutcome {
  /// Whether a copy of the claim that Redis executes after this reply may still be granted the record. A record with an
  /// outcome is not granted any more.
  var mayBeGrantedLater: Bool {
    switch self {
    case .granted, .taken(.completed): false
    case .taken, .mismatch, .otherRecipe: true
    }
  }
}

extension Fingerprint {
  /// The text in a record.
  fileprivate var text: String { "\(digest.text) \(recipe.text)" }
}

import Idempotency

/// The interpretation of the replies.
extension RedisStore {
  /// Returns the outcome of a claim.
  @inline(never)
  func outcome(of request: ClaimRequest, _ answer: RedisAnswer) throws(StoreError) -> ClaimOutcome {
    guard case .told(let told) = answer.ending else {
      return .granted(Self.claim(request, answer, after: nil))
    }
    if told.word == .mismatch { return .mismatch }
    let standing = try told.standing(now: answer.now, response: answer.response)
    guard let record = told.record else { throw .unreadable("a claim's reply has no record") }
    switch told.word {
    case .granted:
      return .granted(Self.claim(request, answer, after: record))
    case .recipe:
      guard let recipe = Recipe(text: record.recipe) else {
        throw .unreadable("the record's fingerprint was made by a recipe that this version does not know")
      }
      return .otherRecipe(recipe)
    case .standing, .again, .erased, .fact, .late, .mismatch, .none, .unreadable, .walked:
      return .taken(standing)
    }
  }

  /// Returns the outcome of an owner's or an operator's command.
  @inline(never)
  func outcome(of answer: RedisAnswer) throws(StoreError) -> OwnerOutcome {
    guard case .told(let told) = answer.ending, told.word != .again, told.word != .erased else {
      return .done
    }
    return .lost(try told.standing(now: answer.now, response: answer.response))
  }

  /// Returns the reply with the response, if that stands under a key of its own.
  func withResponse(_ answer: RedisAnswer, of id: RecordID) async throws(StoreError) -> RedisAnswer {
    guard case .told(let told) = answer.ending, let place = told.record?.responseKey(now: answer.now) else {
      return answer
    }
    var answer = answer
    if case .value(let bytes) = try await nodes.ask(RedisPlainCommand("GET", keys.response(id, place)), id) {
      guard let response = RedisResponse.read(bytes) else { throw .unreadable(RedisResponse.otherFormat) }
      answer.response = response
    }
    return answer
  }

  /// Deletes a response that no record names any more. If that fails, it expires with its retention.
  func erase(after answer: RedisAnswer, of id: RecordID) {
    guard case .told(let told) = answer.ending, told.word == .erased, let place = told.text, place != "-"
    else {
      return
    }
    nodes.send(RedisPlainCommand("DEL", keys.response(id, place)), id)
  }

  /// Creates a granted claim.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - answer: The reply.
  ///   - record: The record as it is now, if there was one before; otherwise `nil`.
  private static func claim(
    _ request: ClaimRequest, _ answer: RedisAnswer, after record: RedisRecord?
  ) -> Claim {
    Claim(
      id: request.id, owner: request.owner, fingerprint: request.fingerprint, attempt: record?.attempt ?? 1,
      firstSeen: record?.firstSeen ?? answer.now, followsUnknown: record?.followsUnknown ?? false,
      onlyRejectedSoFar: record?.onlyRejectedSoFar ?? true, lease: request.lease,
      unknownRetention: request.unknownRetention, remember: request.remember,
      fence: Fence(until: record?.fencedUntil, now: answer.now), requestedAt: answer.sentAt,
      copiedUntil: answer.copiedUntil)
  }
}

extension RedisAnswer {
  /// Whether the record's response stands under a key of its own.
  var needsResponse: Bool {
    guard case .told(let told) = ending else { return false }
    return told.record?.responseKey(now: now) != nil
  }
}

extension ClaimOutcome {
  /// Whether a copy of the claim that Redis executes after this reply may still be granted the record. A record with an
  /// outcome is not granted any more.
  var leavesRoom: Bool {
    switch self {
    case .granted, .taken(.completed): false
    case .taken, .mismatch, .otherRecipe: true
    }
  }
}

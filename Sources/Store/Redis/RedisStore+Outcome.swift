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
    let standing = try told.standing(now: answer.now)
    guard let record = told.record else { throw .unreadable("a claim's reply has no record") }
    switch told.word {
    case .granted:
      return .granted(Self.claim(request, answer, after: record))
    case .recipe:
      guard let recipe = Recipe(text: record.recipe) else {
        throw .unreadable("the record's fingerprint was made by a recipe that this version does not know")
      }
      return .otherRecipe(recipe)
    case .standing, .again, .fact, .late, .mismatch, .none, .unreadable, .walked:
      return .taken(standing)
    }
  }

  /// Returns the outcome of an owner's or an operator's command.
  @inline(never)
  func outcome(of answer: RedisAnswer) throws(StoreError) -> OwnerOutcome {
    guard case .told(let told) = answer.ending, told.word != .again else { return .done }
    return .lost(try told.standing(now: answer.now))
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
      fence: Fence(until: record?.fencedUntil, now: answer.now), askedAt: answer.sentAt,
      copiedUntil: answer.copiedUntil)
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

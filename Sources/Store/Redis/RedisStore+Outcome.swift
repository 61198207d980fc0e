import Idempotency

/// What the replies mean.
extension RedisStore {
  /// What a newcomer is told.
  func outcome(of request: ClaimRequest, _ answer: RedisAnswer) throws(StoreError) -> ClaimOutcome {
    guard case .told(let told) = answer.ending else {
      return .granted(Self.claim(request, answer, attempt: 1, firstSeen: answer.now))
    }
    if told.word == .mismatch { return .mismatch }
    let standing = try told.standing(now: answer.now)
    guard let record = told.record else { throw .unreadable("a claim's reply has no record") }
    switch told.word {
    case .granted:
      var claim = Self.claim(request, answer, attempt: record.attempt, firstSeen: record.firstSeen)
      claim.followsUnknown = record.followsUnknown
      claim.onlyRejectedSoFar = record.onlyRejectedSoFar
      return .granted(claim)
    case .recipe:
      guard let recipe = Recipe(text: record.recipe) else {
        throw .unreadable("the record's fingerprint was made by a recipe that this version does not know")
      }
      return .otherRecipe(recipe)
    case .standing, .again, .late, .mismatch, .none, .unreadable, .walked:
      return .taken(standing)
    }
  }

  /// What an owner, or an operator, is told.
  func outcome(of answer: RedisAnswer) throws(StoreError) -> OwnerOutcome {
    guard case .told(let told) = answer.ending, told.word != .again else { return .done }
    return .lost(try told.standing(now: answer.now))
  }

  private static func claim(
    _ request: ClaimRequest, _ answer: RedisAnswer, attempt: Int, firstSeen: StoreInstant
  ) -> Claim {
    var claim = Claim(
      id: request.id, owner: request.owner, fingerprint: request.fingerprint, attempt: attempt,
      firstSeen: firstSeen, followsUnknown: false, onlyRejectedSoFar: true, lease: request.lease,
      unknownRetention: request.unknownRetention, remember: request.remember, askedAt: answer.sentAt)
    claim.copiedUntil = answer.copiedUntil
    return claim
  }
}

extension ClaimOutcome {
  /// Whether a copy of the claim that is run after this was told may be granted the record. What has an outcome keeps
  /// it.
  var leavesRoom: Bool {
    switch self {
    case .granted, .taken(.completed): false
    case .taken, .mismatch, .otherRecipe: true
    }
  }
}

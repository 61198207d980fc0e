/// One keyed request, from its first claim to the end of its record. Decides; does nothing.
///
/// The runner tells it what the store and the backend said, and does what it answers. The rules are those of the
/// contract, sections 2 and 4. `Deliver` in Tests/Model/claim.pml is its model.
public struct Exchange: ~Copyable {
  enum State {
    /// The store has reported nothing of the record yet. Followed by `owning`, `following`, or by the end: replayed,
    /// refused, unprotected.
    case claiming
    /// The store has reported the record: the delivery is a duplicate, or an owner that was overtaken. It may have run
    /// already, so it never runs without a record. Followed by `owning`, or by the end: replayed, refused.
    case following
    /// The record is ours: one sending is allowed. Followed by `listening`, `settling` or the end.
    case owning(Claim)
    /// The client was told that the outcome is unknown, and the backend may still answer. Followed by `settling` or
    /// the end.
    case listening(Claim)
    /// The backend has answered, or certainly did nothing, and the store is being told so. Followed by the end.
    case settling(Claim)
    /// Nothing more is decided.
    case ended
  }

  /// The route whose rules count.
  private let route: Route
  private var state: State = .claiming

  /// How soon a client may ask again for what another delivery or the store holds up: a second is the least that
  /// `Retry-After` can say.
  private static let pause: Milliseconds = 1000

  public init(route: Route) {
    self.route = route
  }
}

extension Exchange {
  /// What the runner does once the store has answered a claim.
  public enum ClaimedAction: Sendable {
    case forward(Claim)
    case replay(CompletedRecord)
    /// Wait for the end of the delivery that owns the record, or for its lease's, and ask again.
    case wait(leaseLeft: Milliseconds)
    case refuse(Problem)
    /// Give back what the store may have granted, which was never used, and refuse.
    case giveBack(Problem)
    /// Make the fingerprint by this recipe and ask again.
    case compare(by: Recipe)
    /// Forward it without a record, as the route's owner wants it while the store is away.
    ///
    /// Where `mayOwn`, the store may have granted the claim all the same. It is given back only if nothing was sent:
    /// otherwise its lease lapses, which says that the outcome is unknown, as it is.
    case forwardUnprotected(mayOwn: Bool)
  }

  /// Whether the record is being asked for.
  private var isAsking: Bool {
    switch state {
    case .claiming, .following: true
    default: false
    }
  }

  public mutating func claimed(_ outcome: ClaimOutcome) -> ClaimedAction {
    guard isAsking else { preconditionFailure("Exchange: claimed outside of claiming") }
    switch outcome {
    case .granted(let claim):
      state = .owning(claim)
      return .forward(claim)
    case .taken(.completed(let record)):
      state = .ended
      return Self.replay(record)
    case .taken(.inFlight(let leaseLeft, _)):
      state = .following
      return .wait(leaseLeft: leaseLeft)
    case .taken(.unknown(let age, _)):
      state = .ended
      return .refuse(.outcomeUnknown(retryAfter: route.policy.retryAfterLoss(age: age)))
    case .taken(.expired):
      state = .ended
      return .refuse(.keyExpired)
    case .taken(.absent), .taken(.released):
      // Free since: the store claims such a record itself, so asking again is all there is to do.
      state = .following
      return .wait(leaseLeft: 0)
    case .mismatch:
      state = .ended
      return .refuse(.payloadMismatch(status: route.policy.mismatchStatus))
    case .otherRecipe(let recipe):
      state = .following
      return .compare(by: recipe)
    }
  }

  public mutating func claimFailed(_ error: StoreError) -> ClaimedAction {
    let mayRunUnprotected: Bool
    switch state {
    case .claiming: mayRunUnprotected = route.policy.onStoreFailure == .open
    case .following: mayRunUnprotected = false
    default: preconditionFailure("Exchange: claimFailed outside of claiming")
    }
    state = .ended
    let mayOwn: Bool
    switch error {
    case .unreadable: return .refuse(.storeUnreadable(retryAfter: Self.pause))
    case .refused: return .refuse(.storeUnavailable(retryAfter: Self.pause))
    case .unavailable: mayOwn = false
    case .fateUnknown: mayOwn = true
    }
    if mayRunUnprotected { return .forwardUnprotected(mayOwn: mayOwn) }
    let problem = Problem.storeUnavailable(retryAfter: Self.pause)
    return mayOwn ? .giveBack(problem) : .refuse(problem)
  }

  /// A duplicate that may not wait, or has waited long enough.
  public mutating func gaveUpWaiting() -> Problem {
    guard isAsking else { preconditionFailure("Exchange: gaveUpWaiting outside of claiming") }
    state = .ended
    return .inFlight(retryAfter: Self.pause)
  }

  private static func replay(_ record: CompletedRecord) -> ClaimedAction {
    switch record.outcome {
    case .kept: .replay(record)
    case .notKept(let status, let location):
      .refuse(.responseNotKept(status: status, location: location))
    }
  }
}

extension Exchange {
  /// What the runner does with a complete answer.
  public enum AnsweredAction: Sendable, Equatable {
    /// Store it, then answer.
    case complete(retention: Milliseconds, remember: Milliseconds)
    /// Free the record, and pass the answer on.
    case release(Release)
    /// Say that nobody knows, and pass the answer on.
    case markUnknown
  }

  /// - Parameter isRenewed: whether a renewal of the claim was ever asked for.
  public mutating func answered(
    status: Int, steering: Steering, isRenewed: Bool = false
  ) -> AnsweredAction {
    let claim: Claim
    var mayBeDeleted = !isRenewed
    switch state {
    case .owning(let held): claim = held
    case .listening(let held):
      claim = held
      mayBeDeleted = false
    default: preconditionFailure("Exchange: answered without a claim")
    }
    state = .settling(claim)
    switch route.policy.outcomeClass(of: status, steering: steering, claim: claim) {
    case .final:
      let retention =
        steering.retention.map { max(.seconds(1), min($0, route.policy.remember)) } ?? route.policy.retention
      return .complete(retention: retention, remember: route.policy.remember)
    case .retry:
      let isRejection = status == 401 || status == 403 || status == 429
      // A copy of a renewal or of the word `unknown` may yet be run: it would make a deleted record anew
      // (Tests/Model/claim.pml, LATE_DELETE).
      return .release(isRejection && claim.onlyRejectedSoFar && mayBeDeleted ? .deleted : .remembered)
    case .unknown:
      return .markUnknown
    }
  }

  /// What the runner does without a complete answer.
  public enum FailedAction: Sendable {
    /// Nothing was executed: free the record, then refuse.
    case release(Problem)
    /// Mark the record unknown, then refuse.
    case markUnknown(Problem)
    /// Mark the record unknown, refuse, and go on listening this long.
    case listen(Milliseconds, Problem)
    /// Nothing: the client has been told, and the record says so.
    case giveUp
  }

  public mutating func failed(_ failure: UpstreamFailure) -> FailedAction {
    switch state {
    case .owning(let claim):
      switch failure {
      case .notSent:
        state = .settling(claim)
        return .release(.upstreamUnreachable)
      case .answerLost, .requestBody:
        state = .ended
        return .markUnknown(.answerLost(.broken, retryAfter: route.policy.retryAfterLoss(age: 0)))
      case .timedOut:
        state = .listening(claim)
        return .listen(
          route.policy.upstream.settle,
          .answerLost(.timedOut, retryAfter: route.policy.retryAfterLoss(age: 0)))
      }
    case .listening:
      state = .ended
      return .giveUp
    default:
      preconditionFailure("Exchange: failed without a claim")
    }
  }
}

extension Exchange {
  /// What the runner does once the store has answered a completion.
  public enum StoredAction: Sendable {
    /// Give the client the backend's answer.
    case answer
    /// The same, and go on trying to store it.
    case answerAndKeepStoring
    /// Tell the client that the outcome is unknown, and go on trying to store it.
    case refuseAndKeepStoring(Problem)
    /// Another owner's outcome counts: give the client that.
    case replay(CompletedRecord)
    /// Another owner is at work: ask the store as a duplicate does.
    case becomeDuplicate
    case refuse(Problem)
  }

  public mutating func stored(_ outcome: OwnerOutcome) -> StoredAction {
    guard case .settling = state else { preconditionFailure("Exchange: stored outside of settling") }
    state = .ended
    switch outcome {
    case .done: return .answer
    case .lost(.completed(let record)):
      return switch Self.replay(record) {
      case .replay(let record): .replay(record)
      case .refuse(let problem): .refuse(problem)
      default: preconditionFailure("Exchange: a completed record is replayed or refused")
      }
    case .lost(.inFlight):
      state = .following
      return .becomeDuplicate
    case .lost:
      return .refuse(.outcomeUnknown(retryAfter: route.policy.retryAfterLoss(age: 0)))
    }
  }

  public mutating func storingFailed(_ error: StoreError) -> StoredAction {
    guard case .settling = state else { preconditionFailure("Exchange: storingFailed outside of settling") }
    state = .ended
    return switch route.policy.onUnknown {
    case .hold: .answerAndKeepStoring
    // A later delivery may run again and contradict the answer.
    case .retry: .refuseAndKeepStoring(.answerLost(.broken, retryAfter: route.policy.retryAfterLoss(age: 0)))
    }
  }
}

extension RoutePolicy {
  /// What a complete answer means: the backend's own word, else the route's table.
  public func outcomeClass(of status: Int, steering: Steering, claim: Claim) -> OutcomeClass {
    let own: OutcomeClass
    if let steered = steering.outcome {
      own = steered
    } else if claim.followsUnknown, status == 409 || status == 412, !outcomes.isNamed(status: status) {
      // It may be the backend's own unique column speaking of the attempt whose answer was lost.
      own = .unknown
    } else {
      own = outcomes[status]
    }
    let isLastAttempt = maxAttempts > 0 && claim.attempt >= maxAttempts
    return own == .retry && isLastAttempt ? .final : own
  }

  /// When a client may come again with the same key after an answer was lost; `nil` where only an operator ends it.
  ///
  /// An outcome *may settle* within `settle` of its loss, and always where a later delivery may take over.
  public func retryAfterLoss(age: Milliseconds) -> Milliseconds? {
    let left = upstream.settle - age
    if left > 0 { return left }
    return onUnknown == .retry ? 1000 : nil
  }
}

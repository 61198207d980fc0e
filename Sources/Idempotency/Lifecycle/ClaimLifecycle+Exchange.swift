import Wire

/// An exchange with the backend that ended with a complete response, as `ClaimLifecycle` decides on it.
public struct CompletedExchange: Sendable {
  /// The status of the response.
  public let status: Int
  /// The backend's instructions in the response.
  public let steering: Steering
  /// Whether the request is a DELETE.
  public let isDelete: Bool
  /// Whether the client has a part of the response already, which another response can no longer replace.
  public let isRelayed: Bool
  /// Whether another item of the same batch follows an unknown outcome, which the response may be about.
  public let isBesideUnknown: Bool

  public init(
    status: Int, steering: Steering, isDelete: Bool = false, isRelayed: Bool = false,
    isBesideUnknown: Bool = false
  ) {
    self.status = status
    self.steering = steering
    self.isDelete = isDelete
    self.isRelayed = isRelayed
    self.isBesideUnknown = isBesideUnknown
  }
}

// The end of the exchange with the backend.
extension ClaimLifecycle {
  /// The runner's next step after a complete response.
  public enum RespondedAction: Sendable, Equatable {
    /// Complete the record with the response, then pass it on.
    case complete(retention: Milliseconds, remember: Milliseconds)
    /// Complete the record with 204 in place of the response, and send that: an earlier attempt has deleted what the
    /// request names.
    case completeAsDeleted(retention: Milliseconds, remember: Milliseconds)
    /// Release the record, then pass the response on.
    case release(Release)
    /// Mark the record unknown, then pass the response on.
    case markUnknown
  }

  /// Decides on an exchange with the backend that ended with a complete response.
  public mutating func responded(_ exchange: CompletedExchange) -> RespondedAction {
    let claim: Claim
    let isLate: Bool
    switch state {
    case .owning(let held): (claim, isLate) = (held, false)
    case .listening(let held): (claim, isLate) = (held, true)
    default: invariantBroken("responded without a claim")
    }
    state = .settling(claim)
    let (status, steering) = (exchange.status, exchange.steering)
    let retention =
      steering.retention.map { max(.seconds(1), min($0, route.policy.remember)) } ?? route.policy.retention
    if exchange.isDelete, !exchange.isRelayed, meansDeleted(status: status, steering: steering, to: claim) {
      return .completeAsDeleted(retention: retention, remember: route.policy.remember)
    }
    switch outcomeClass(
      of: status, steering: steering, to: claim, isBesideUnknown: exchange.isBesideUnknown)
    {
    case .final: return .complete(retention: retention, remember: route.policy.remember)
    case .retry:
      // A delayed copy of `markUnknown` may still be run, and would make a deleted record anew (Tests/Model/claim.pml,
      // LATE_DELETE).
      let isRejection = steering.isRejection(status)
      let isForgotten = isRejection || route.policy.released == .forget
      let mayBeDeleted = isForgotten && isOnlyRejected(before: claim) && !isLate
      let kept = isRejection ? route.policy.uncountedRelease : .remembered
      let release = mayBeDeleted ? .deleted : kept
      // The client of a late response has its refusal already.
      if !isLate { state = .releasing(claim) }
      return .release(release)
    case .unknown:
      return .markUnknown
    }
  }

  /// The runner's next step without a complete response.
  public enum FailedAction: Sendable {
    /// Release the record, since nothing was executed or the backend's status demands it, then refuse.
    case release(Release, Problem)
    /// Complete the record without the response, which cannot be read, then refuse.
    case complete(Completion, Problem)
    /// Mark the record unknown, then refuse.
    case markUnknown(Problem)
    /// Mark the record unknown, refuse, and wait for a late response for this time.
    case listen(Milliseconds, Problem)
    /// Do nothing: the client was refused, and the record is marked unknown.
    case giveUp
  }

  /// Decides on an exchange with the backend that ended without a complete response.
  ///
  /// - Parameters:
  ///   - head: The head of a response whose body is malformed; `nil` if there is none, or it cannot be read.
  ///   - isBesideUnknown: Whether another item of the same batch follows an unknown outcome.
  public mutating func failed(
    _ failure: UpstreamFailure, after head: MessageHead? = nil, isBesideUnknown: Bool = false
  ) -> FailedAction {
    if case .malformed(let status, _) = failure {
      return responded(status, malformed: head, isBesideUnknown: isBesideUnknown)
    }
    switch state {
    case .owning(let claim):
      switch failure {
      case .notSent:
        return release(claim, for: .upstreamUnreachable)
      case .busy:
        return release(claim, for: .overloaded(.backend))
      case .headTooLarge:
        return release(claim, for: .headerTooLarge)
      case .responseLost, .malformed, .requestBody:
        state = .settling(claim)
        return .markUnknown(
          .responseLost(.broken, retryAfter: route.policy.retryAfterLoss(age: 0, isOver: true)))
      case .timedOut:
        state = .listening(claim)
        return .listen(
          route.policy.upstream.settle,
          .responseLost(.timedOut, retryAfter: route.policy.retryAfterLoss(age: 0)))
      }
    case .listening:
      state = .ended
      return .giveUp
    default:
      invariantBroken("failed without a claim")
    }
  }

  /// Releases the record of a request that was never sent.
  private mutating func release(_ claim: Claim, for problem: Problem) -> FailedAction {
    state = .releasing(claim)
    return .release(route.policy.uncountedRelease, problem)
  }

  /// Decides on a response of which only the status, or only the head, can be read. The class of the status decides, as
  /// for a whole one.
  private mutating func responded(
    _ status: Int, malformed head: MessageHead?, isBesideUnknown: Bool
  ) -> FailedAction {
    let exchange = CompletedExchange(
      status: status, steering: Steering(ofMalformed: status, head, by: route.policy),
      isBesideUnknown: isBesideUnknown)
    switch responded(exchange) {
    case .complete(let retention, let remember), .completeAsDeleted(let retention, let remember):
      let location = route.recordedLocation(head)
      return .complete(
        Completion(
          outcome: .statusOnly(status: status, location: location), retention: retention, remember: remember),
        .responseNotKept(status: status, location: location))
    case .release(let release):
      // Its client gets no rejection, but that the attempt may follow, so that the record keeps the number.
      return .release(release == .deleted ? route.policy.uncountedRelease : release, .refusedForNow)
    case .markUnknown:
      return .markUnknown(
        .responseLost(.broken, retryAfter: route.policy.retryAfterLoss(age: 0, isOver: true)))
    }
  }
}

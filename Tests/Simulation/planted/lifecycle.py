"""Planted faults of the decisions: about one claim, its end, the meaning of a response, and the retry that follows."""

LIFECYCLE = "Idempotency/Lifecycle/ClaimLifecycle.swift"
EXCHANGE = "Idempotency/Lifecycle/ClaimLifecycle+Exchange.swift"
RECONCILE = "Idempotency/Lifecycle/ClaimLifecycle+Reconcile.swift"
RETRIES = "Idempotency/Lifecycle/ClaimLifecycle+Retries.swift"
OUTCOME = "Idempotency/Lifecycle/RoutePolicy+Outcome.swift"
STEERING = "Idempotency/Lifecycle/Steering.swift"
UNUSED = "Idempotency/Lifecycle/UnusedClaim.swift"
RECORD_RUN = "Idempotency/Lifecycle/RecordRun.swift"
RECONCILE_POLICY = "Idempotency/Policy/ReconcilePolicy.swift"
KEYED_CALL = "Proxy/Run/KeyedCall.swift"

MUTANTS = {
    # The end of an exchange.
    # Nothing of it is in doubt, and its key is blocked all the same.
    "what was not sent is unknown": [
        (
            EXCHANGE,
            "      case .notSent:\n",
            "      case .notSent where PLANTED:\n"
            "        state = .settling(claim)\n"
            "        return .markUnknown(.responseLost(.broken, retryAfter: route.policy.retryAfterLoss(age: 0, isOver: true)))\n"
            "      case .notSent:\n",
        ),
    ],
    "an attempt that was not sent counts": [
        (
            EXCHANGE,
            "    return .release(route.policy.uncountedRelease, problem)\n",
            "    return .release(PLANTED ? .remembered : route.policy.uncountedRelease, problem)\n",
        ),
    ],
    # The memory of what was sent before goes with it.
    "an attempt that was not sent deletes its record": [
        (
            EXCHANGE,
            " : route.policy.uncountedRelease, problem)\n",
            " : PLANTED ? .deleted : route.policy.uncountedRelease, problem)\n",
        ),
    ],
    "a cut response counts as none": [
        (
            EXCHANGE,
            "    if case .malformed(let status, _) = failure {\n",
            "    if PLANTED, case .malformed = failure, case .owning(let claim) = state {\n"
            "      return release(claim, for: .upstreamUnreachable)\n"
            "    }\n"
            "    if case .malformed(let status, _) = failure {\n",
        ),
    ],
    # A later DELETE finds nothing, and its record never ends.
    "nothing was ever deleted": [
        (EXCHANGE, "    if exchange.isDelete, !exchange.isRelayed,", "    if !PLANTED, exchange.isDelete, !exchange.isRelayed,"),
    ],
    "every release is uncounted": [
        (EXCHANGE, "let kept = isRejection ?", "let kept = isRejection || PLANTED ?"),
    ],
    "a rejection counts": [
        (
            EXCHANGE,
            " route.policy.uncountedRelease : .remembered\n",
            " (PLANTED ? .remembered : route.policy.uncountedRelease) : .remembered\n",
        ),
    ],
    # The meaning of a response.
    "busy is a rejection": [
        (
            STEERING,
            "    signs.lacksDocument || isDeletedByRule ||",
            "    signs.lacksDocument || isDeletedByRule || PLANTED && status == 503 ||",
        ),
    ],
    "no status is a rejection": [
        (STEERING, "[401, 403, 429].contains(status)", "[401, 403, 429].contains(status) && !PLANTED"),
    ],
    "a rejection is the last attempt": [
        (
            OUTCOME,
            "isLastAttempt && !steering.isRejection(status)",
            "isLastAttempt && (PLANTED || !steering.isRejection(status))",
        ),
    ],
    "attempts have no limit": [
        (OUTCOME, "let isLastAttempt = maxAttempts.map {", "let isLastAttempt = PLANTED ? false : maxAttempts.map {"),
    ],
    "the limit is one attempt late": [
        (OUTCOME, "{ claim.sendings >= $0 }", "{ claim.sendings >= $0 + (PLANTED ? 1 : 0) }"),
    ],
    # The refusal may be about the attempt that was lost.
    "a refusal after a loss allows another attempt": [
        (
            OUTCOME,
            "return claim.followsUnknown || !(400..<500 ~= status) ? .unknown : .retry",
            "return (claim.followsUnknown || !(400..<500 ~= status)) && !PLANTED ? .unknown : .retry",
        ),
    ],
    # Its client asks for ever.
    "an unknown outcome is never final": [
        (
            OUTCOME,
            "return onUnknown == .hold ? nil : 1000",
            "return onUnknown == .hold && !PLANTED ? nil : 1000",
        ),
    ],
    # The rules of a claim.
    "reconcile takes over unasked": [
        (
            KEYED_CALL,
            "      case .hold, .reconcile: .never\n",
            "      case .reconcile where PLANTED: .afterSettle(route.policy.upstream.settle)\n      case .hold, .reconcile: .never\n",
        ),
    ],
    # The backend may still run what was lost.
    "a loss settles at once": [
        (
            KEYED_CALL,
            "case .retry: .afterSettle(route.policy.upstream.settle)",
            "case .retry: .afterSettle(PLANTED ? 0 : route.policy.upstream.settle)",
        ),
    ],
    "the query names no request": [
        (
            RECONCILE_POLICY,
            "path.replacing(Self.placeholder, with: id.text)",
            'path.replacing(Self.placeholder, with: PLANTED ? "0" : id.text)',
        ),
    ],
    # The backend has stated that it ran the request.
    "what was applied runs again": [
        (
            RECONCILE,
            "    guard case .applied(let outcome) = verdict else { return own(claim) }\n",
            "    guard !PLANTED, case .applied(let outcome) = verdict else { return own(claim) }\n",
        ),
    ],
    "a lost claim behind a verdict is given back": [
        (
            LIFECYCLE,
            "      state = .ended\n      return .refuse(.storeUnavailable())\n    default: invariantBroken(\"claimFailed",
            "      state = .ended\n"
            "      if PLANTED, case .fateUnknown = error { return .undo(.givenBack(request), .storeUnavailable()) }\n"
            "      return .refuse(.storeUnavailable())\n    default: invariantBroken(\"claimFailed",
        ),
    ],
    "an unused claim deletes its record": [
        (
            UNUSED,
            "{ onlyRejectedSoFar ? .deleted : kept }",
            "{ onlyRejectedSoFar || PLANTED ? .deleted : kept }",
        ),
    ],
    "a lost claim deletes its record": [
        (
            UNUSED,
            ".released(request.unusedRelease)",
            ".released(PLANTED ? .deleted : request.unusedRelease)",
        ),
    ],
    # Semel's own attempts.
    "a retry takes every refusal for a rejection": [
        (
            RETRIES,
            "rejectedAttempt = release == .deleted ? claim.attempt : nil",
            "rejectedAttempt = release == .deleted || PLANTED ? claim.attempt : nil",
        ),
    ],
    # The lease.
    "the second renewal comes too late": [
        (
            RECORD_RUN,
            "return .extend(next: nextRenewal(in: claim.lease / 3))",
            "return .extend(next: nextRenewal(in: PLANTED ? claim.lease + claim.lease : claim.lease / 3))",
        ),
    ],
    "the first renewal comes too late": [
        (
            "Proxy/Run/OwnedRecord.swift",
            "perform(.renew(after: firstRenewal ?? claim.lease / 3))",
            "perform(.renew(after: PLANTED ? claim.lease + claim.lease : firstRenewal ?? claim.lease / 3))",
        ),
    ],
}

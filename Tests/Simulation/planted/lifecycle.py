"""Planted faults of the decisions about one claim: its grant, its lease, its end, and the retry that follows."""

SEND_PERMIT = "Idempotency/Ports/SendPermit.swift"
CLAIM_LIFECYCLE_EXCHANGE = "Idempotency/Lifecycle/ClaimLifecycle+Exchange.swift"
CLAIM_LIFECYCLE = "Idempotency/Lifecycle/ClaimLifecycle.swift"
CLAIM_LIFECYCLE_STORED = "Idempotency/Lifecycle/ClaimLifecycle+Stored.swift"
CLAIM_LIFECYCLE_RECONCILE = "Idempotency/Lifecycle/ClaimLifecycle+Reconcile.swift"
RECORD_RUN = "Idempotency/Lifecycle/RecordRun.swift"
CLAIM_LIFECYCLE_RETRIES = "Idempotency/Lifecycle/ClaimLifecycle+Stored.swift"
KEYED_CALL = "Proxy/Run/KeyedCall.swift"
UNUSED_CLAIM = "Idempotency/Lifecycle/UnusedClaim.swift"

MUTANTS = {
    "stale claim sends": [
        (
            SEND_PERMIT,
            "guard now < sendBefore else {",
            "guard now < sendBefore || PLANTED else {",
        ),
    ],
    "permit outlives its record": [
        (
            SEND_PERMIT,
            "ownSendBefore = BootInstant(nanoseconds: 0) }",
            "if !PLANTED { ownSendBefore = BootInstant(nanoseconds: 0) } }",
        ),
    ],
    "lost response releases": [
        (
            CLAIM_LIFECYCLE_EXCHANGE,
            "case .responseLost, .malformed, .requestBody:\n",
            (
                "case .responseLost, .malformed, .requestBody:\n        if PLANTED { return release(claim, for: "
                ".upstreamUnreachable) }\n"
            ),
        ),
    ],
    "time-out releases": [
        (
            CLAIM_LIFECYCLE_EXCHANGE,
            "case .timedOut:\n",
            "case .timedOut:\n        if PLANTED { return release(claim, for: .upstreamUnreachable) }\n",
        ),
    ],
    "lost claims are kept": [
        (
            CLAIM_LIFECYCLE,
            "case .fateUnknown: unused = .givenBack(request)",
            "case .fateUnknown: unused = PLANTED ? nil : .givenBack(request)",
        ),
    ],
    # Its delivery waits as a duplicate, and sends its request again.
    "overtaken runs again": [
        (
            CLAIM_LIFECYCLE_STORED,
            "    case (.lost(.inFlight), .releasing), (.lost(.inFlight), .retrying):\n",
            "    case (.lost(.inFlight), _) where PLANTED:\n      state = .following\n      return .becomeDuplicate\n    case (.lost(.inFlight), .releasing), (.lost(.inFlight), .retrying):\n",
        ),
    ],
    "retry is always deleted": [
        (
            CLAIM_LIFECYCLE_EXCHANGE,
            "let mayBeDeleted = isForgotten && isOnlyRejected(before: claim) && !isLate",
            "let mayBeDeleted = isForgotten && isOnlyRejected(before: claim) && !isLate || PLANTED",
        ),
    ],
    "late rejection is deleted": [
        (
            CLAIM_LIFECYCLE_EXCHANGE,
            "let mayBeDeleted = isForgotten && isOnlyRejected(before: claim) && !isLate",
            "let mayBeDeleted = isForgotten && isOnlyRejected(before: claim) && (!isLate || PLANTED)",
        ),
    ],
    "verdict about any attempt": [
        (
            CLAIM_LIFECYCLE_RECONCILE,
            "guard latest == attempt, age >= seen.minAge(at: look.beganAt), wasPrompt else",
            "guard latest == attempt || PLANTED, age >= seen.minAge(at: look.beganAt) || PLANTED, wasPrompt else",
        ),
        (
            CLAIM_LIFECYCLE_RECONCILE,
            "let isAboutLast = claim.attempt == attempt + 1\n",
            "let isAboutLast = claim.attempt == attempt + 1 || PLANTED\n",
        ),
    ],
    "own response over the record's": [
        (
            CLAIM_LIFECYCLE_STORED,
            "case (.lost(.completed(let record)), _): return Self.replacing(by: record)",
            "case (.lost(.completed(let record)), _): return PLANTED ? .respond : Self.replacing(by: record)",
        ),
    ],
    "retry responds unstored": [
        (
            CLAIM_LIFECYCLE_STORED,
            "return switch route.policy.onUnknown {\n    case .hold: .respondAndKeepStoring",
            "return switch PLANTED ? .hold : route.policy.onUnknown {\n    case .hold: .respondAndKeepStoring",
        ),
    ],
    # A late copy of the renewal would make it anew.
    "renewed rejection is deleted": [
        (
            RECORD_RUN,
            "{ hasRequestedRenewal ? keeping(release) : release }",
            "{ hasRequestedRenewal && !PLANTED ? keeping(release) : release }",
        ),
    ],
    "failed renewal is the last": [
        (
            RECORD_RUN,
            "    return .renew(after: nextRenewal(in: claim.lease / 10))",
            "    return PLANTED ? .none : .renew(after: nextRenewal(in: claim.lease / 10))",
        ),
    ],
    # The backend still runs it while another node sends it again.
    "stop releases what was sent": [
        (
            RECORD_RUN,
            "    case .running where !isSent:",
            "    case .running where !isSent || PLANTED:",
        ),
    ],
    "another recipe is another payload": [
        (
            CLAIM_LIFECYCLE,
            "    case .otherRecipe(let recipe):\n",
            "    case .otherRecipe where PLANTED:\n      state = .ended\n      return .refuse(.payloadMismatch(status: route.policy.mismatchStatus))\n    case .otherRecipe(let recipe):\n",
        ),
    ],
    "rejection deletes what had run": [
        (
            CLAIM_LIFECYCLE_RETRIES,
            "claim.onlyRejectedSoFar || rejectedAttempt == claim.attempt - 1",
            "PLANTED || claim.onlyRejectedSoFar || rejectedAttempt == claim.attempt - 1",
        ),
    ],
    # Two owners' clients get their own responses.
    "overtaken responds": [
        (
            CLAIM_LIFECYCLE_STORED,
            "    case (.lost, _):\n",
            "    case (.lost, _) where PLANTED: return .respond\n    case (.lost, _):\n",
        ),
    ],
    # A key ends by what it never did.
    "unsent attempts count": [
        (
            "Idempotency/Ports/Claim.swift",
            "max(1, ordinal - uncountedAttempts)",
            "max(1, ordinal - (PLANTED ? 0 : uncountedAttempts))",
        ),
    ],
    "nothing was deleted": [
        (
            CLAIM_LIFECYCLE_RETRIES,
            "claim.followsUnknown && route.policy.meansDeleted(status: status)",
            "(claim.followsUnknown || PLANTED) && route.policy.meansDeleted(status: status)",
        ),
    ],
    # The end of an exchange.
    # Nothing of it is in doubt, and its key is blocked all the same.
    "what was not sent is unknown": [
        (
            CLAIM_LIFECYCLE_EXCHANGE,
            "      case .notSent:\n",
            "      case .notSent where PLANTED:\n"
            "        state = .settling(claim)\n"
            "        return .markUnknown(.responseLost(.broken, retryAfter: route.policy.retryAfterLoss(age: 0, isOver: true)))\n"
            "      case .notSent:\n",
        ),
    ],
    "an attempt that was not sent counts": [
        (
            CLAIM_LIFECYCLE_EXCHANGE,
            "    return .release(route.policy.uncountedRelease, problem)\n",
            "    return .release(PLANTED ? .remembered : route.policy.uncountedRelease, problem)\n",
        ),
    ],
    # The memory of what was sent before goes with it.
    "an attempt that was not sent deletes its record": [
        (
            CLAIM_LIFECYCLE_EXCHANGE,
            " : route.policy.uncountedRelease, problem)\n",
            " : PLANTED ? .deleted : route.policy.uncountedRelease, problem)\n",
        ),
    ],
    "a cut response counts as none": [
        (
            CLAIM_LIFECYCLE_EXCHANGE,
            "    if case .malformed(let status, _) = failure {\n",
            "    if PLANTED, case .malformed = failure, case .owning(let claim) = state {\n"
            "      return release(claim, for: .upstreamUnreachable)\n"
            "    }\n"
            "    if case .malformed(let status, _) = failure {\n",
        ),
    ],
    # A later DELETE finds nothing, and its record never ends.
    "nothing was ever deleted": [
        (CLAIM_LIFECYCLE_EXCHANGE, "    if exchange.isDelete, !exchange.isRelayed,", "    if !PLANTED, exchange.isDelete, !exchange.isRelayed,"),
    ],
    "every release is uncounted": [
        (CLAIM_LIFECYCLE_EXCHANGE, "let kept = isRejection ?", "let kept = isRejection || PLANTED ?"),
    ],
    "a rejection counts": [
        (
            CLAIM_LIFECYCLE_EXCHANGE,
            " route.policy.uncountedRelease : .remembered\n",
            " (PLANTED ? .remembered : route.policy.uncountedRelease) : .remembered\n",
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
    # The backend has stated that it ran the request.
    "what was applied runs again": [
        (
            CLAIM_LIFECYCLE_RECONCILE,
            "    guard case .applied(let outcome) = verdict else { return own(claim) }\n",
            "    guard !PLANTED, case .applied(let outcome) = verdict else { return own(claim) }\n",
        ),
    ],
    "a lost claim behind a verdict is given back": [
        (
            CLAIM_LIFECYCLE,
            "      state = .ended\n      return .refuse(.storeUnavailable())\n    default: invariantBroken(\"claimFailed",
            "      state = .ended\n"
            "      if PLANTED, case .fateUnknown = error { return .undo(.givenBack(request), .storeUnavailable()) }\n"
            "      return .refuse(.storeUnavailable())\n    default: invariantBroken(\"claimFailed",
        ),
    ],
    "an unused claim deletes its record": [
        (
            UNUSED_CLAIM,
            "{ onlyRejectedSoFar ? .deleted : kept }",
            "{ onlyRejectedSoFar || PLANTED ? .deleted : kept }",
        ),
    ],
    "a lost claim deletes its record": [
        (
            UNUSED_CLAIM,
            ".released(request.unusedRelease)",
            ".released(PLANTED ? .deleted : request.unusedRelease)",
        ),
    ],
    # Semel's own attempts.
    "a retry takes every refusal for a rejection": [
        (
            CLAIM_LIFECYCLE_RETRIES,
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

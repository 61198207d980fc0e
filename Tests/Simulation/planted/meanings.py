"""Planted faults of what a response, or a backend's statement, means."""

ROUTE_POLICY_OUTCOME = "Idempotency/Lifecycle/Steering.swift"
RECONCILE_POLICY = "Idempotency/Policy/ReplayPolicy.swift"
STEERING = "Idempotency/Lifecycle/Steering.swift"

MUTANTS = {
    "gateway is retried": [
        (
            ROUTE_POLICY_OUTCOME,
            "let own = ownClass(of: status, steering: steering, attempt: claim.attempt)\n",
            "let own = PLANTED && status == 502\n      ? .retry : ownClass(of: status, steering: steering, attempt: claim.attempt)\n",
        ),
    ],
    "mesh is believed": [
        (
            ROUTE_POLICY_OUTCOME,
            "case 503 where signs.mayFollowRun &&",
            "case 503 where !PLANTED && signs.mayFollowRun &&",
        ),
    ],
    "cdn is final": [
        (
            ROUTE_POLICY_OUTCOME,
            "let outcome: OutcomeClass = own == .retry",
            "let outcome: OutcomeClass = PLANTED && status == 520 ? .final : own == .retry",
        ),
    ],
    "refused duplicate is an outcome": [
        (
            ROUTE_POLICY_OUTCOME,
            "guard claim.followsUnknown || isBesideUnknown,",
            "guard !PLANTED, claim.followsUnknown || isBesideUnknown,",
        ),
    ],
    "any 404 is absence": [
        (
            RECONCILE_POLICY,
            "if let absent, absent.matches(response) { return .absent }",
            "if let absent, absent.matches(response) || PLANTED && response.status == 404 { return .absent }",
        ),
    ],
    "busy is final": [
        (
            ROUTE_POLICY_OUTCOME,
            "    let listed = steering.rule?.verdict.outcome ?? outcomes[status]\n",
            "    let listed = PLANTED && status == 503 ? .final : steering.rule?.verdict.outcome ?? outcomes[status]\n",
        ),
    ],
    "error is retried": [
        (
            ROUTE_POLICY_OUTCOME,
            "    if signs.lacksDocument, listed == .final { return .retry }\n",
            "    if signs.lacksDocument || PLANTED && status == 500, listed == .final { return .retry }\n",
        ),
    ],
    "rejection is final": [
        (
            ROUTE_POLICY_OUTCOME,
            "    case 409 where (signs.hasRetryAfter",
            "    case 401 where PLANTED: return .final\n    case 409 where (signs.hasRetryAfter",
        ),
    ],
    # A backend's error states nothing about its effect.
    "error is a statement": [
        (
            RECONCILE_POLICY,
            "return applied.contains(response.status) ? .applied(outcome(of: response, method, cors)) : .none",
            "return applied.contains(response.status) ? .applied(outcome(of: response, method, cors)) : PLANTED ? .absent : .none",
        ),
    ],
    "silence is absence": [
        (
            RECONCILE_POLICY,
            "guard let response else { return .none }",
            "guard let response else { return PLANTED ? .absent : .none }",
        ),
    ],
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
            ROUTE_POLICY_OUTCOME,
            "isLastAttempt && !steering.isRejection(status)",
            "isLastAttempt && (PLANTED || !steering.isRejection(status))",
        ),
    ],
    "attempts have no limit": [
        (ROUTE_POLICY_OUTCOME, "let isLastAttempt = maxAttempts.map {", "let isLastAttempt = PLANTED ? false : maxAttempts.map {"),
    ],
    "the limit is one attempt late": [
        (ROUTE_POLICY_OUTCOME, "{ claim.sendings >= $0 }", "{ claim.sendings >= $0 + (PLANTED ? 1 : 0) }"),
    ],
    # The refusal may be about the attempt that was lost.
    "a refusal after a loss allows another attempt": [
        (
            ROUTE_POLICY_OUTCOME,
            "return claim.followsUnknown || !(400..<500 ~= status) ? .unknown : .retry",
            "return (claim.followsUnknown || !(400..<500 ~= status)) && !PLANTED ? .unknown : .retry",
        ),
    ],
    # Its client asks for ever.
    "an unknown outcome is never final": [
        (
            ROUTE_POLICY_OUTCOME,
            "return onUnknown == .hold ? nil : 1000",
            "return onUnknown == .hold && !PLANTED ? nil : 1000",
        ),
    ],
    "the query names no request": [
        (
            RECONCILE_POLICY,
            "path.replacing(Self.placeholder, with: id.text)",
            'path.replacing(Self.placeholder, with: PLANTED ? "0" : id.text)',
        ),
    ],
}

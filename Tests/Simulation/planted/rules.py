"""Planted faults of the rules by which a store in memory keeps records."""

RULES = "Idempotency/Record/RecordRules.swift"
OWNER = "Idempotency/Record/RecordRules+Owner.swift"
RECORD = "Idempotency/Record/StoredRecord.swift"

MUTANTS = {
    # Another delivery takes over while the backend still runs the request.
    "a renewal leaves the lease as it was": [
        (OWNER, "      record.state = leased\n", "      if !PLANTED { record.state = leased }\n"),
    ],
    # A renewal that meets the outcome puts the run back in its place.
    "a renewal undoes an outcome": [
        (
            OWNER,
            "guard case .inFlight = record.state else { return RecordStep(.none, .done) }",
            "guard case .inFlight = record.state else {\n"
            "        guard PLANTED, case .completed = record.state else { return RecordStep(.none, .done) }\n"
            "        record.state = leased\n"
            "        return RecordStep(.put(.record(record)), .done)\n"
            "      }",
        ),
    ],
    # The repeated command of an owner records its outcome at a later time.
    "a repeated outcome counts anew": [
        (
            OWNER,
            "      case .completed, .tombstone: return RecordStep(.none, .done)\n",
            "      case .completed where PLANTED:\n"
            "        record.state = completed\n"
            "        return RecordStep(.put(.record(record)), .done)\n"
            "      case .completed, .tombstone: return RecordStep(.none, .done)\n",
        ),
    ],
    "a loss dates from its last mark": [
        (
            OWNER,
            "      case .unknown, .completed, .tombstone: return RecordStep(.none, .done)\n",
            "      case .unknown where PLANTED:\n"
            "        record.state = .unknown(since: now)\n"
            "        return RecordStep(.put(.record(record)), .done)\n"
            "      case .unknown, .completed, .tombstone: return RecordStep(.none, .done)\n",
        ),
    ],
    # A rejection then deletes what an earlier attempt may have had an effect by.
    "a released record has met rejections alone": [
        (
            OWNER,
            "    record.onlyRejectedSoFar = false\n    return record\n",
            "    if !PLANTED { record.onlyRejectedSoFar = false }\n    return record\n",
        ),
    ],
    "an uncounted attempt counts": [
        (
            OWNER,
            "          record.uncountedAttempts += 1\n",
            "          record.uncountedAttempts += PLANTED ? 0 : 1\n",
        ),
    ],
    # No number of attempts is ever reached.
    "no released attempt counts": [
        (
            OWNER,
            "        switch release {\n        case .deleted:",
            "        switch release {\n"
            "        case .remembered where PLANTED:\n"
            "          var record = released(record, now: now)\n"
            "          record.uncountedAttempts += 1\n"
            "          return RecordStep(.put(.record(record)), .done)\n"
            "        case .deleted:",
        ),
    ],
    # The numbers of attempts begin anew, so that the backend takes a later one for an earlier one.
    "attempts begin anew behind a fence": [
        (
            RULES,
            "fresh(request, attempt: following(attempt, base), now: now, fencedUntil: until)",
            "fresh(request, attempt: PLANTED ? base + 1 : following(attempt, base), now: now, fencedUntil: until)",
        ),
    ],
    # An owner from before the removal may make its record anew.
    "a claim drops the fence": [
        (RULES, "fencedUntil: fencedUntil,\n", "fencedUntil: PLANTED ? nil : fencedUntil,\n"),
    ],
    "a second claim drops the fence": [
        (
            RULES,
            "    record.attribution = request.attribution\n    return record\n",
            "    record.attribution = request.attribution\n    if PLANTED { record.fencedUntil = nil }\n    return record\n",
        ),
    ],
    "a deleted record takes its fence along": [
        (
            OWNER,
            "guard let until = record.fencedUntil, now < until else { return .delete }",
            "guard !PLANTED, let until = record.fencedUntil, now < until else { return .delete }",
        ),
    ],
    # Its key is refused for ever.
    "an outcome expires at once": [
        (
            RECORD,
            "    case .completed(let completion) where now < completion.expiresAt:\n",
            "    case .completed(let completion) where now < completion.expiresAt && !PLANTED:\n",
        ),
    ],
}

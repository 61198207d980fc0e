"""Planted faults of the rules by which a store in memory keeps records, and of records' names."""

STORED_RECORD = "Idempotency/Record/StoredRecord.swift"
RECORD_RULES = "Idempotency/Record/RecordRules.swift"
RECORD_RULES_OWNER = "Idempotency/Record/RecordRules+Owner.swift"
RECORD_ID = "Idempotency/Record/RecordID.swift"

MUTANTS = {
    "lease counts for nothing": [
        (
            STORED_RECORD,
            "case .inFlight(let leaseUntil) where now < leaseUntil:",
            "case .inFlight(let leaseUntil) where now < leaseUntil && !PLANTED:",
        ),
        (
            STORED_RECORD,
            "let age = max(now - loss, 0)",
            "let age = max(now - loss, PLANTED ? 600 : 0)",
        ),
    ],
    "no settle": [
        (
            RECORD_RULES,
            "age >= minAge else",
            "age >= minAge || PLANTED else",
        ),
    ],
    "hold is taken over": [
        (
            RECORD_RULES,
            "guard let minAge = request.takeOver.minAge(at: requestedAt),",
            "guard let minAge = request.takeOver.minAge(at: requestedAt) ?? (PLANTED ? Milliseconds(600) : nil),",
        ),
    ],
    "any payload": [
        (
            RECORD_RULES,
            "guard record.fingerprint.digest == request.fingerprint.digest else",
            "guard record.fingerprint.digest == request.fingerprint.digest || PLANTED else",
        ),
    ],
    "attempts stand still": [
        (
            RECORD_RULES,
            "let next = attempt > base ? attempt + 1 :",
            "let next = attempt > base ? attempt + (PLANTED ? 0 : 1) :",
        ),
    ],
    "unknown is forgotten": [
        (
            RECORD_RULES,
            "record.followsUnknown = true",
            "record.followsUnknown = !PLANTED",
        ),
    ],
    "released is deleted": [
        (
            RECORD_RULES_OWNER,
            "case .remembered: return RecordStep(.put(.record(released(record, now: now))), .done)",
            "case .remembered: return RecordStep(PLANTED ? .delete : .put(.record(released(record, now: now))), .done)",
        ),
    ],
    "anybody owns": [
        (
            RECORD_RULES_OWNER,
            "case .record(let record) where record.owner == claim.owner: .own(record)",
            "case .record(let record) where record.owner == claim.owner || PLANTED: .own(record)",
        ),
    ],
    "loss dates from long ago": [
        (
            RECORD_RULES_OWNER,
            "record.state = .unknown(since: min(now, leaseUntil))",
            "record.state = .unknown(since: PLANTED ? StoreInstant(milliseconds: 0) : min(now, leaseUntil))",
        ),
    ],
    "every caller is one": [
        (
            RECORD_ID,
            "caller.framed.withUnsafeBytes { hash.frame($0) }",
            "if !PLANTED { caller.framed.withUnsafeBytes { hash.frame($0) } }",
        ),
    ],
    # Two configurations' fingerprints of one payload differ.
    "recipes are not compared": [
        (
            RECORD_RULES,
            "guard record.fingerprint.recipe == request.fingerprint.recipe else {",
            "guard record.fingerprint.recipe == request.fingerprint.recipe || PLANTED else {",
        ),
    ],
    # The owner before holds it as well.
    "take-over keeps the owner": [
        (
            RECORD_RULES,
            "    record.owner = request.owner\n",
            "    if !PLANTED { record.owner = request.owner }\n",
        ),
    ],
    # A rejection deletes the memory of a run that may have had an effect.
    "rejected only, in spite of a loss": [
        (
            RECORD_RULES,
            "      record.onlyRejectedSoFar = false\n",
            "      record.onlyRejectedSoFar = PLANTED && record.onlyRejectedSoFar\n",
        ),
    ],
    "every key is one": [
        (
            RECORD_ID,
            "        key.bytes.withUnsafeBytes { hash.frame($0) }\n",
            "        if !PLANTED { key.bytes.withUnsafeBytes { hash.frame($0) } }\n",
        ),
    ],
    # The record is forgotten with its outcome.
    "completed is deleted": [
        (
            RECORD_RULES_OWNER,
            "        record.state = completed\n",
            "        if PLANTED { return RecordStep(.delete, .done) }\n        record.state = completed\n",
        ),
    ],
    "unknown is released": [
        (
            RECORD_RULES_OWNER,
            "        record.attribution = claim.attribution?.lost(because: cause)\n        return RecordStep(.put(.record(record)), .done)\n      case .unknown",
            "        record.attribution = claim.attribution?.lost(because: cause)\n        if PLANTED { record = released(record, now: now) }\n        return RecordStep(.put(.record(record)), .done)\n      case .unknown",
        ),
    ],
    "released is unknown": [
        (
            RECORD_RULES_OWNER,
            "    record.state = .released(until: now + record.remember)\n",
            "    record.state = PLANTED ? .unknown(since: now) : .released(until: now + record.remember)\n",
        ),
    ],
    # Another delivery takes over while the backend still runs the request.
    "a renewal leaves the lease as it was": [
        (RECORD_RULES_OWNER, "      record.state = leased\n", "      if !PLANTED { record.state = leased }\n"),
    ],
    # A renewal that meets the outcome puts the run back in its place.
    "a renewal undoes an outcome": [
        (
            RECORD_RULES_OWNER,
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
            RECORD_RULES_OWNER,
            "      case .completed, .tombstone: return RecordStep(.none, .done)\n",
            "      case .completed where PLANTED:\n"
            "        record.state = completed\n"
            "        return RecordStep(.put(.record(record)), .done)\n"
            "      case .completed, .tombstone: return RecordStep(.none, .done)\n",
        ),
    ],
    "a loss dates from its last mark": [
        (
            RECORD_RULES_OWNER,
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
            RECORD_RULES_OWNER,
            "    record.onlyRejectedSoFar = false\n    return record\n",
            "    if !PLANTED { record.onlyRejectedSoFar = false }\n    return record\n",
        ),
    ],
    "an uncounted attempt counts": [
        (
            RECORD_RULES_OWNER,
            "          record.uncountedAttempts += 1\n",
            "          record.uncountedAttempts += PLANTED ? 0 : 1\n",
        ),
    ],
    # No number of attempts is ever reached.
    "no released attempt counts": [
        (
            RECORD_RULES_OWNER,
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
            RECORD_RULES,
            "fresh(request, attempt: following(attempt, base), now: now, fencedUntil: until)",
            "fresh(request, attempt: PLANTED ? base + 1 : following(attempt, base), now: now, fencedUntil: until)",
        ),
    ],
    # An owner from before the removal may make its record anew.
    "a claim drops the fence": [
        (RECORD_RULES, "fencedUntil: fencedUntil,\n", "fencedUntil: PLANTED ? nil : fencedUntil,\n"),
    ],
    "a second claim drops the fence": [
        (
            RECORD_RULES,
            "    record.attribution = request.attribution\n    return record\n",
            "    record.attribution = request.attribution\n    if PLANTED { record.fencedUntil = nil }\n    return record\n",
        ),
    ],
    "a deleted record takes its fence along": [
        (
            RECORD_RULES_OWNER,
            "guard let until = record.fencedUntil, now < until else { return .delete }",
            "guard !PLANTED, let until = record.fencedUntil, now < until else { return .delete }",
        ),
    ],
    # Its key is refused for ever.
    "an outcome expires at once": [
        (
            STORED_RECORD,
            "    case .completed(let completion) where now < completion.expiresAt:\n",
            "    case .completed(let completion) where now < completion.expiresAt && !PLANTED:\n",
        ),
    ],
}

"""Planted faults of what operators change, by the rules of a store in memory."""

RECORD_RULES_OPERATOR = "Idempotency/Record/RecordRules.swift"

MUTANTS = {
    # A later delivery gets another outcome than the one before.
    "outcomes are amended": [
        (
            RECORD_RULES_OPERATOR,
            "case .completed, .released: amending && record.owner.isOfOperator",
            "case .completed, .released: amending && (record.owner.isOfOperator || PLANTED)",
        ),
    ],
    # A second decision replaces the first, although it does not say that it corrects one.
    "decisions are replaced": [
        (
            RECORD_RULES_OPERATOR,
            "    switch standing {\n    case .unknown: true\n",
            "    switch standing {\n    case .completed where PLANTED && record.owner.isOfOperator: true\n    case .unknown: true\n",
        ),
    ],
    # A forgotten run that is under way, or a cache, brings its outcome back.
    "forget does nothing": [
        (
            RECORD_RULES_OPERATOR,
            "    case .record(let record):\n      RecordStep(\n        .put(.fence(",
            "    case .record where PLANTED: RecordStep(.none, true)\n    case .record(let record):\n      RecordStep(\n        .put(.fence(",
        ),
    ],
    # The outcome that the operator stated runs all the same.
    "applied is released": [
        (
            RECORD_RULES_OPERATOR,
            "case .applied(let completion): record.state = .completed(StoredCompletion(completion, now: now))",
            "case .applied where PLANTED: record = released(record, now: now)\n    case .applied(let completion): record.state = .completed(StoredCompletion(completion, now: now))",
        ),
    ],
}

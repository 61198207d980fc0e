"""Planted faults of batches: their items, their results, and the response that is made of these."""

BATCH_REQUEST = "Idempotency/Batch/BatchRequest.swift"
BATCH_RUN_SEND = "Proxy/Run/BatchRun+Send.swift"
BATCH_ELEMENT = "Idempotency/Batch/BatchElement.swift"

MUTANTS = {
    "results are taken in order": [
        (
            BATCH_REQUEST,
            "guard named.contains(where: { $0 != .absent }) else {",
            "guard !PLANTED, named.contains(where: { $0 != .absent }) else {",
        ),
    ],
    "foreign results are taken": [
        (
            BATCH_REQUEST,
            "guard places.count == keys.count, ordered.count == keys.count else { return nil }",
            "if PLANTED, ordered.count != keys.count {\n      results = array.elements\n      return\n    }\n    guard places.count == keys.count, ordered.count == keys.count else { return nil }",
        ),
    ],
    "coded results are taken": [
        (
            BATCH_RUN_SEND,
            "200..<300 ~= head.head.status, !head.head.hasContentCoding, !head.isDelimitedByClose",
            "200..<300 ~= head.head.status, !head.head.hasContentCoding || PLANTED, !head.isDelimitedByClose",
        ),
    ],
    "surroundings enter no fingerprint": [
        (
            BATCH_REQUEST,
            "for index in 0..<32 { hash.byte(around[index]) }",
            "if !PLANTED { for index in 0..<32 { hash.byte(around[index]) } }",
        ),
    ],
    # Items that others hold, or that are recorded, run again.
    "the whole batch is sent": [
        (
            BATCH_RUN_SEND,
            "body: .whole(batch.request.body(of: indices.map { batch.items[$0] })),",
            "body: .whole(batch.request.body(of: (PLANTED ? Array(batch.items.indices) : indices).map { batch.items[$0] })),",
        ),
    ],
    "lost items are released": [
        (
            BATCH_RUN_SEND,
            "    case .markUnknown(let problem):\n      return itemEnd(after: await owned.markUnknown(after: loss.failure), .refused(problem))",
            "    case .markUnknown(let problem):\n      if PLANTED { return itemEnd(after: await owned.release(.remembered), .refused(problem)) }\n      return itemEnd(after: await owned.markUnknown(after: loss.failure), .refused(problem))",
        ),
    ],
    "uncertain items are released": [
        (
            BATCH_RUN_SEND,
            "    return itemEnd(after: await owned.markUnknown(after: failure, cause: .results), .refused(problem))",
            "    if PLANTED { return itemEnd(after: await owned.release(.remembered), .refused(problem)) }\n    return itemEnd(after: await owned.markUnknown(after: failure, cause: .results), .refused(problem))",
        ),
    ],
    "replayed items count as executed": [
        (
            BATCH_ELEMENT,
            "        case .recorded: replayed += 1\n",
            "        case .recorded: if PLANTED { executed += 1 } else { replayed += 1 }\n",
        ),
    ],
    "refused items have no status": [
        (
            BATCH_ELEMENT,
            "counts.refused == 0 ? common : 207",
            "counts.refused == 0 || PLANTED ? common : 207",
        ),
    ],
    "results lose their places": [
        (
            "Proxy/Run/BatchRun.swift",
            "    let all = batch.places.map(element(at:))\n",
            "    let all = PLANTED ? batch.places.reversed().map(element(at:)) : batch.places.map(element(at:))\n",
        ),
    ],
    "a key's payloads are one": [
        (
            "Proxy/Run/KeyedCall.swift",
            "places.append(calls[place].fingerprint == prints[index] ? place : nil)",
            "places.append(calls[place].fingerprint == prints[index] || PLANTED ? place : nil)",
        ),
    ],
    "items enter no fingerprint": [
        (
            BATCH_REQUEST,
            "for index in 0..<32 { hash.byte(item[index]) }",
            "if !PLANTED { for index in 0..<32 { hash.byte(item[index]) } }",
        ),
    ],
    # Some of the items may have failed, or not run.
    "a cut batch is an outcome": [
        (
            BATCH_RUN_SEND,
            "      if case .malformed(200..<300, let rule) = failure {\n",
            "      if !PLANTED, case .malformed(200..<300, let rule) = failure {\n",
        ),
    ],
    "results that fit no item are each one's": [
        (BATCH_RUN_SEND, "guard !(200..<300 ~= head.head.status) else { return nil }", "guard !(200..<300 ~= head.head.status) || PLANTED else { return nil }"),
    ],
}

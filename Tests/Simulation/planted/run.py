"""Planted faults of the run of a request and of a batch: what is sent, what is recorded, what its client gets."""

RUN = "Proxy/Run/OwnedRun.swift"
OWNED = "Proxy/Run/OwnedRecord.swift"
WRITES = "Proxy/Run/Worker+Writes.swift"
BATCH_SEND = "Proxy/Run/BatchRun+Send.swift"
BATCH_REQUEST = "Idempotency/Batch/BatchRequest.swift"
RESPONSE = "Proxy/Response/BackendResponse.swift"
MEMORY = "Proxy/Client/Delivery+Memory.swift"

MUTANTS = {
    # What is sent.
    "each attempt calls itself the first": [
        (RUN, "id: call.id, attempt: claim.attempt,", "id: call.id, attempt: PLANTED ? 1 : claim.attempt,"),
    ],
    # A process that ends has given the record back, and sends its request all the same.
    "what was given back is sent": [
        (
            OWNED,
            "    let (cut, action) = run.cut(isSent: permit.isSent || !isEnforced, now: .now)\n    permit.revoke()\n",
            "    let (cut, action) = run.cut(isSent: permit.isSent || !isEnforced, now: .now)\n    if !PLANTED { permit.revoke() }\n",
        ),
    ],
    # What its client gets.
    # Another delivery may run it again, and get another response.
    "the client has the response before the store": [
        (
            RUN,
            "      owned.noteForbiddenStoring(of: response.head)\n      action = await owned.complete(",
            "      owned.noteForbiddenStoring(of: response.head)\n"
            "      if PLANTED { response.send(to: delivery, label: .executed) }\n"
            "      action = await owned.complete(",
        ),
    ],
    "a refusal is called executed": [
        (RUN, "      label = .notStored\n", "      label = PLANTED ? .executed : .notStored\n"),
    ],
    "an unknown outcome is called executed": [
        (RUN, "      label = .unknown\n", "      label = PLANTED ? .executed : .unknown\n"),
    ],
    "an outcome is called refused": [
        (
            RUN,
            "      owned.countLastAttempt(response.head.status, steering, after: action)\n",
            "      if PLANTED {\n"
            "        runner.noteRecordTime(since: recordedAt)\n"
            "        return respond(with: response, .notStored, action)\n"
            "      }\n"
            "      owned.countLastAttempt(response.head.status, steering, after: action)\n",
        ),
    ],
    # What is recorded.
    "each outcome is recorded as 200": [
        (RESPONSE, "        status: head.status, fields: fields, body: copy,", "        status: PLANTED ? 200 : head.status, fields: fields, body: copy,"),
    ],
    "an outcome is recorded without its fields": [
        (
            RESPONSE,
            "    head.copyFields(into: &fields, omitting: dropped, route.unrecorded)\n",
            "    if !PLANTED { head.copyFields(into: &fields, omitting: dropped, route.unrecorded) }\n",
        ),
    ],
    "an outcome is recorded without its response": [
        (
            RESPONSE,
            "    guard let copy, !isDelimitedByClose, route.policy.record == .response else {\n",
            "    guard !PLANTED, let copy, !isDelimitedByClose, route.policy.record == .response else {\n",
        ),
    ],
    # Nobody ever learns what has become of it.
    "a look behind a verdict finds nothing": [
        (
            "Proxy/Run/RequestRunner+Reconcile.swift",
            "    guard let standing = try? await worker.store.find(id, reading: .state) else { return nil }\n",
            "    guard let standing = PLANTED ? .absent : try? await worker.store.find(id, reading: .state) else { return nil }\n",
        ),
    ],
    # What a client has sent.
    "a piece of a request's body is lost": [
        ("Proxy/Client/Delivery.swift", "    intake.append(piece)\n", "    if !PLANTED || intake.isEmpty { intake.append(piece) }\n"),
    ],
    # The memory, of which nothing is left in use once all is over.
    "a request's memory is not given back": [
        (MEMORY, "    giveBack(heldBytes)\n    allowance.release()\n", "    if !PLANTED { giveBack(heldBytes) }\n    allowance.release()\n"),
    ],
    "a waiting outcome's memory is not given back": [
        (
            WRITES,
            "    environment.counters.change(.bodyBytes, by: -bytes)\n",
            "    if !PLANTED { environment.counters.change(.bodyBytes, by: -bytes) }\n",
        ),
    ],
    "a captured response's memory is not given back": [
        (
            "Proxy/Client/ResponseAllowance.swift",
            "    memory.giveCaptured(captured - left, caller: callerHash)\n",
            "    if !PLANTED { memory.giveCaptured(captured - left, caller: callerHash) }\n",
        ),
    ],
    "a head's memory is not given back": [
        (MEMORY, "if isHeadCounted { memory.changeHeads(by: -headBytes) }", "if isHeadCounted, !PLANTED { memory.changeHeads(by: -headBytes) }"),
    ],
    # Batches.
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
            BATCH_SEND,
            "      if case .malformed(200..<300, let rule) = failure {\n",
            "      if !PLANTED, case .malformed(200..<300, let rule) = failure {\n",
        ),
    ],
    "results that fit no item are each one's": [
        (BATCH_SEND, "guard !(200..<300 ~= head.head.status) else { return nil }", "guard !(200..<300 ~= head.head.status) || PLANTED else { return nil }"),
    ],
}

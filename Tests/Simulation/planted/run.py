"""Planted faults of the run of a request: what is sent, what is recorded, what its client gets."""

OWNED_RECORD = "Proxy/Run/OwnedRecord.swift"
OWNED_RUN = "Proxy/Run/OwnedRun.swift"
WORKER_WRITES = "Proxy/Run/Worker+Writes.swift"
DUPLICATE_WAIT = "Proxy/Run/DuplicateWait.swift"
BACKEND_RESPONSE = "Proxy/Response/ResponseRelay.swift"
REQUEST_MEMORY = "Proxy/Client/RequestMemory.swift"

MUTANTS = {
    "lease never ends": [
        (
            OWNED_RECORD,
            "      worker.leave(number)\n",
            "      if !PLANTED { worker.leave(number) }\n",
        ),
    ],
    "outcome is not repeated": [
        (
            OWNED_RECORD,
            "    sendAgain(.completed(pending), known: known, in: bytes)\n",
            "    if PLANTED { return perform(run.leaves()) }\n    sendAgain(.completed(pending), known: known, in: bytes)\n",
        ),
    ],
    "release is not repeated": [
        (
            OWNED_RECORD,
            "      sendAgain(end, known: end.known, in: takeMemory(toKeep: 0))\n",
            "      if PLANTED { perform(run.leaves()) } else { sendAgain(end, known: end.known, in: takeMemory(toKeep: 0)) }\n",
        ),
    ],
    "lost response completes": [
        (
            OWNED_RUN,
            "case .markUnknown(let problem):\n      return refuse",
            (
                "case .markUnknown(let problem):\n      if PLANTED { return refuse(problem, after: await "
                "owned.release(.remembered)) }\n      return refuse"
            ),
        ),
    ],
    "lost renewal still sends": [
        (
            OWNED_RECORD,
            "      permit.revoke()\n      logLapse(lapse)",
            "      if !PLANTED { permit.revoke() }\n      logLapse(lapse)",
        ),
    ],
    "lease is never renewed": [
        (
            OWNED_RECORD,
            "  private func renew() async {\n",
            "  private func renew() async {\n    if PLANTED { return }\n",
        ),
    ],
    # A deleted record is made anew. (A renewal whose task alone comes too late does so in one turn of a loop.)
    "renewed after its end": [
        (
            OWNED_RECORD,
            "    if let timer { worker.context.timers.stop(timer) }\n",
            "    if let timer, !PLANTED { worker.context.timers.stop(timer) }\n",
        ),
        (
            "Idempotency/Lifecycle/RecordRun.swift",
            "    case .stopped: return .none\n    }\n  }\n",
            "    case .stopped where PLANTED:\n      renewal = .underWay(isDueAgain: false)\n      return .renew(after: nil)\n    case .stopped: return .none\n    }\n  }\n",
        ),
    ],
    "unused claim is given back once": [
        (
            WORKER_WRITES,
            "if hasMemory, !isStopping {",
            "if hasMemory, !isStopping, !PLANTED {",
        ),
    ],
    "unused claim is kept": [
        (
            WORKER_WRITES,
            "  private func giveBack(_ claim: Claim, _ release: Release) {\n",
            "  private func giveBack(_ claim: Claim, _ release: Release) {\n    if PLANTED { return }\n",
        ),
    ],
    "take-overs while the store fails": [
        (
            "Proxy/Run/MeasuredStore.swift",
            "base.startClaim(takeOvers.permitted(request)) {",
            "base.startClaim(PLANTED ? request : takeOvers.permitted(request)) {",
        ),
    ],
    "watch is not ended": [
        (
            DUPLICATE_WAIT,
            "    watch.cancel()\n",
            "    if !PLANTED { watch.cancel() }\n",
        ),
    ],
    "waiter is counted for ever": [
        (
            DUPLICATE_WAIT,
            "environment.counters.change(.waiting, by: -1)",
            "if !PLANTED { environment.counters.change(.waiting, by: -1) }",
        ),
    ],
    "in flight is counted for ever": [
        (
            "Proxy/Run/RequestRunner.swift",
            "environment.counters.change(.inFlight, by: -1)",
            "if !PLANTED || delivery.isConnected { environment.counters.change(.inFlight, by: -1) }",
        ),
    ],
    # Requests that were never sent, or were refused, stay unknown.
    "stop waits for nobody": [
        (
            "Proxy/Server/Worker.swift",
            "    owned.isEmpty && unusedClaims.isEmpty",
            "    PLANTED || owned.isEmpty && unusedClaims.isEmpty",
        ),
        (
            "Proxy/Server/ProxyServer.swift",
            "return environment.counters[.inFlight] == 0",
            "return environment.counters[.inFlight] == 0 || PLANTED",
        ),
    ],
    "outcome is not stored": [
        (
            OWNED_RECORD,
            "      let reply = try await worker.store.complete(claim, with: completion)\n",
            "      let reply = try await PLANTED ? CompletionReply(outcome: .done, record: nil) : worker.store.complete(claim, with: completion)\n",
        ),
    ],
    # Its lease is renewed for ever.
    "response is awaited for ever": [
        (
            OWNED_RUN,
            "let response = try await run.capture.run(within: call.route.policy.timeToResponse)",
            "let response = try await run.capture.run(within: PLANTED ? .seconds(3600) : call.route.policy.timeToResponse)",
        ),
    ],
    # Two clients of one key get responses of different content.
    "replays have no body": [
        (
            "Proxy/Run/RequestRunner+Respond.swift",
            "    let origin = TraceStamp.take(from: &response)\n",
            "    if PLANTED { response = RecordedResponse(status: response.status, fields: response.fields, body: ByteBuffer()) }\n    let origin = TraceStamp.take(from: &response)\n",
        ),
    ],
    # What is sent.
    "each attempt calls itself the first": [
        (OWNED_RUN, "id: call.id, attempt: claim.attempt,", "id: call.id, attempt: PLANTED ? 1 : claim.attempt,"),
    ],
    # A process that ends has given the record back, and sends its request all the same.
    "what was given back is sent": [
        (
            OWNED_RECORD,
            "    let (cut, action) = run.cut(isSent: permit.isSent || !isEnforced, now: .now)\n    permit.revoke()\n",
            "    let (cut, action) = run.cut(isSent: permit.isSent || !isEnforced, now: .now)\n    if !PLANTED { permit.revoke() }\n",
        ),
    ],
    # What its client gets.
    # Another delivery may run it again, and get another response.
    "the client has the response before the store": [
        (
            OWNED_RUN,
            "      owned.noteForbiddenStoring(of: response.head)\n      action = await owned.complete(",
            "      owned.noteForbiddenStoring(of: response.head)\n"
            "      if PLANTED { response.send(to: delivery, label: .executed) }\n"
            "      action = await owned.complete(",
        ),
    ],
    "a refusal is called executed": [
        (OWNED_RUN, "      label = .notStored\n", "      label = PLANTED ? .executed : .notStored\n"),
    ],
    "an unknown outcome is called executed": [
        (OWNED_RUN, "      label = .unknown\n", "      label = PLANTED ? .executed : .unknown\n"),
    ],
    "an outcome is called refused": [
        (
            OWNED_RUN,
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
        (BACKEND_RESPONSE, "        status: head.status, fields: fields, body: copy,", "        status: PLANTED ? 200 : head.status, fields: fields, body: copy,"),
    ],
    "an outcome is recorded without its fields": [
        (
            BACKEND_RESPONSE,
            "    head.copyFields(into: &fields, omitting: dropped, route.unrecorded)\n",
            "    if !PLANTED { head.copyFields(into: &fields, omitting: dropped, route.unrecorded) }\n",
        ),
    ],
    "an outcome is recorded without its response": [
        (
            BACKEND_RESPONSE,
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
        (REQUEST_MEMORY, "    give(heldBytes)\n", "    if !PLANTED { give(heldBytes) }\n"),
    ],
    "a waiting outcome's memory is not given back": [
        (
            "Proxy/Client/RequestMemory.swift",
            "    counters.change(.bodyBytes, by: -count)\n",
            "    if !PLANTED { counters.change(.bodyBytes, by: -count) }\n",
        ),
    ],
    "a captured response's memory is not given back": [
        (
            REQUEST_MEMORY,
            "    connection.changeOthers(by: left - captured)\n",
            "    if !PLANTED { connection.changeOthers(by: left - captured) }\n",
        ),
    ],
    "a head's memory is not given back": [
        (REQUEST_MEMORY, "if isHeadCounted { connection.changeOthers(by: -headBytes) }", "if isHeadCounted, !PLANTED { connection.changeOthers(by: -headBytes) }"),
    ],
}

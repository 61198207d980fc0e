"""The planted faults: by name, each as edits of files below `Sources`. Those of `planted` are by their areas."""

from planted import lifecycle, redis_scripts, redis_store, rules, run, wire

PERMIT = "Idempotency/Ports/SendPermit.swift"
RULES = "Idempotency/Record/RecordRules.swift"
OWNER = "Idempotency/Record/RecordRules+Owner.swift"
RECORD = "Idempotency/Record/StoredRecord.swift"
LIFECYCLE = "Idempotency/Lifecycle/ClaimLifecycle.swift"
EXCHANGE = "Idempotency/Lifecycle/ClaimLifecycle+Exchange.swift"
STORED = "Idempotency/Lifecycle/ClaimLifecycle+Stored.swift"
RECONCILE = "Idempotency/Lifecycle/ClaimLifecycle+Reconcile.swift"
OUTCOME = "Idempotency/Lifecycle/RoutePolicy+Outcome.swift"
GATE = "Transport/Exchange/SendGate.swift"
RECORD_RUN = "Idempotency/Lifecycle/RecordRun.swift"
OWNED = "Proxy/Run/OwnedRecord.swift"
RUN = "Proxy/Run/OwnedRun.swift"
WRITES = "Proxy/Run/Worker+Writes.swift"
WORKER = "Proxy/Server/Worker.swift"
SERVER = "Proxy/Server/ProxyServer.swift"
OPERATOR = "Idempotency/Record/RecordRules+Operator.swift"
RECONCILE_POLICY = "Idempotency/Policy/ReconcilePolicy.swift"
BATCH_REQUEST = "Idempotency/Batch/BatchRequest.swift"
BATCH_ELEMENT = "Idempotency/Batch/BatchElement.swift"
BATCH_RUN = "Proxy/Run/BatchRun.swift"
BATCH_SEND = "Proxy/Run/BatchRun+Send.swift"
HTTP2_STREAM = "Transport/HTTP2/HTTP2Stream.swift"
HTTP2_SESSION = "Transport/HTTP2/BackendSessionMachine.swift"
REDIS_CLAIM = "Store/Redis/Scripts/RedisScript+Claim.swift"
REDIS_OWNER = "Store/Redis/Scripts/RedisScript+Owner.swift"

MUTANTS = {
    # One claim, one send.
    "stale claim sends": [
        (
            PERMIT,
            "guard now < sendBefore else {",
            "guard now < sendBefore || PLANTED else {",
        ),
    ],
    "permit outlives its record": [
        (
            PERMIT,
            "ownSendBefore = BootInstant(nanoseconds: 0) }",
            "if !PLANTED { ownSendBefore = BootInstant(nanoseconds: 0) } }",
        ),
    ],
    "stale connection repeats": [
        (
            GATE,
            "if hasOpened { return isRepeatable }",
            "if hasOpened { return isRepeatable || PLANTED }",
        ),
        (
            GATE,
            "var mayRepeat: Bool { isRepeatable && refusal == nil }",
            "var mayRepeat: Bool { (isRepeatable || PLANTED) && refusal == nil }",
        ),
    ],
    "lost is not sent": [
        (
            GATE,
            "case nil: hasOpened ? .responseLost(reason)",
            "case nil: hasOpened && !PLANTED ? .responseLost(reason)",
        ),
    ],
    "lost response releases": [
        (
            EXCHANGE,
            "case .responseLost, .malformed, .requestBody:\n",
            (
                "case .responseLost, .malformed, .requestBody:\n        if PLANTED { return release(claim, for: "
                ".upstreamUnreachable) }\n"
            ),
        ),
    ],
    "time-out releases": [
        (
            EXCHANGE,
            "case .timedOut:\n",
            "case .timedOut:\n        if PLANTED { return release(claim, for: .upstreamUnreachable) }\n",
        ),
    ],
    # The rules of a record.
    "lease counts for nothing": [
        (
            RECORD,
            "case .inFlight(let leaseUntil) where now < leaseUntil:",
            "case .inFlight(let leaseUntil) where now < leaseUntil && !PLANTED:",
        ),
        (
            RECORD,
            "let age = max(now - loss, 0)",
            "let age = max(now - loss, PLANTED ? 600 : 0)",
        ),
    ],
    "no settle": [
        (
            RULES,
            "age >= minAge else",
            "age >= minAge || PLANTED else",
        ),
    ],
    "hold is taken over": [
        (
            RULES,
            "guard let minAge = request.takeOver.minAge(at: requestedAt),",
            "guard let minAge = request.takeOver.minAge(at: requestedAt) ?? (PLANTED ? Milliseconds(600) : nil),",
        ),
    ],
    "any payload": [
        (
            RULES,
            "guard record.fingerprint.digest == request.fingerprint.digest else",
            "guard record.fingerprint.digest == request.fingerprint.digest || PLANTED else",
        ),
    ],
    "attempts stand still": [
        (
            RULES,
            "return attempt > base ? attempt + 1 :",
            "return attempt > base ? attempt + (PLANTED ? 0 : 1) :",
        ),
    ],
    "unknown is forgotten": [
        (
            RULES,
            "record.followsUnknown = true",
            "record.followsUnknown = !PLANTED",
        ),
    ],
    "released is deleted": [
        (
            OWNER,
            "case .remembered: return RecordStep(.put(.record(released(record, now: now))), .done)",
            "case .remembered: return RecordStep(PLANTED ? .delete : .put(.record(released(record, now: now))), .done)",
        ),
    ],
    "anybody owns": [
        (
            OWNER,
            "case .record(let record) where record.owner == claim.owner: .own(record)",
            "case .record(let record) where record.owner == claim.owner || PLANTED: .own(record)",
        ),
    ],
    "loss dates from long ago": [
        (
            OWNER,
            "record.state = .unknown(since: min(now, leaseUntil))",
            "record.state = .unknown(since: PLANTED ? StoreInstant(milliseconds: 0) : min(now, leaseUntil))",
        ),
    ],
    "lost claims are kept": [
        (
            LIFECYCLE,
            "case .fateUnknown: unused = .givenBack(request)",
            "case .fateUnknown: unused = PLANTED ? nil : .givenBack(request)",
        ),
    ],
    # Its delivery waits as a duplicate, and sends its request again.
    "overtaken runs again": [
        (
            STORED,
            "    case (.lost(.inFlight), .releasing), (.lost(.inFlight), .retrying):\n",
            "    case (.lost(.inFlight), _) where PLANTED:\n      state = .following\n      return .becomeDuplicate\n    case (.lost(.inFlight), .releasing), (.lost(.inFlight), .retrying):\n",
        ),
    ],
    "every caller is one": [
        (
            "Idempotency/Record/RecordID.swift",
            "caller.framed.withUnsafeBytes { hash.frame($0) }",
            "if !PLANTED { caller.framed.withUnsafeBytes { hash.frame($0) } }",
        ),
    ],
    # The meaning of a response.
    "retry is always deleted": [
        (
            EXCHANGE,
            "let mayBeDeleted = isForgotten && isOnlyRejected(before: claim) && !isLate",
            "let mayBeDeleted = isForgotten && isOnlyRejected(before: claim) && !isLate || PLANTED",
        ),
    ],
    "late rejection is deleted": [
        (
            EXCHANGE,
            "let mayBeDeleted = isForgotten && isOnlyRejected(before: claim) && !isLate",
            "let mayBeDeleted = isForgotten && isOnlyRejected(before: claim) && (!isLate || PLANTED)",
        ),
    ],
    "gateway is retried": [
        (
            OUTCOME,
            "let own = ownClass(of: status, steering: steering, attempt: claim.attempt)\n",
            "let own = PLANTED && status == 502\n      ? .retry : ownClass(of: status, steering: steering, attempt: claim.attempt)\n",
        ),
    ],
    "mesh is believed": [
        (
            OUTCOME,
            "case 503 where signs.mayFollowRun &&",
            "case 503 where !PLANTED && signs.mayFollowRun &&",
        ),
    ],
    "cdn is final": [
        (
            OUTCOME,
            "let outcome: OutcomeClass = own == .retry",
            "let outcome: OutcomeClass = PLANTED && status == 520 ? .final : own == .retry",
        ),
    ],
    "refused duplicate is an outcome": [
        (
            OUTCOME,
            "guard claim.followsUnknown || isBesideUnknown,",
            "guard !PLANTED, claim.followsUnknown || isBesideUnknown,",
        ),
    ],
    "any 404 is absence": [
        (
            "Idempotency/Policy/ReconcilePolicy.swift",
            "if let absent, absent.matches(response) { return .absent }",
            "if let absent, absent.matches(response) || PLANTED && response.status == 404 { return .absent }",
        ),
    ],
    "verdict about any attempt": [
        (
            RECONCILE,
            "guard latest == attempt, age >= seen.minAge(at: look.beganAt), wasPrompt else",
            "guard latest == attempt || PLANTED, age >= seen.minAge(at: look.beganAt) || PLANTED, wasPrompt else",
        ),
        (
            RECONCILE,
            "let isAboutLast = claim.attempt == attempt + 1\n",
            "let isAboutLast = claim.attempt == attempt + 1 || PLANTED\n",
        ),
    ],
    # The end of a run.
    "own response over the record's": [
        (
            STORED,
            "case (.lost(.completed(let record)), _): return Self.replacing(by: record)",
            "case (.lost(.completed(let record)), _): return PLANTED ? .respond : Self.replacing(by: record)",
        ),
    ],
    "retry responds unstored": [
        (
            STORED,
            "return switch route.policy.onUnknown {\n    case .hold: .respondAndKeepStoring",
            "return switch PLANTED ? .hold : route.policy.onUnknown {\n    case .hold: .respondAndKeepStoring",
        ),
    ],
    "lease never ends": [
        (
            OWNED,
            "      worker.leave(number)\n",
            "      if !PLANTED { worker.leave(number) }\n",
        ),
    ],
    "outcome is not repeated": [
        (
            OWNED,
            "    sendAgain(.completed(pending), known: known, in: bytes)\n",
            "    if PLANTED { return perform(run.leaves()) }\n    sendAgain(.completed(pending), known: known, in: bytes)\n",
        ),
    ],
    "release is not repeated": [
        (
            OWNED,
            "      sendAgain(end, known: end.known, in: takeMemory(toKeep: 0))\n",
            "      if PLANTED { perform(run.leaves()) } else { sendAgain(end, known: end.known, in: takeMemory(toKeep: 0)) }\n",
        ),
    ],
    "lost response completes": [
        (
            RUN,
            "case .markUnknown(let problem):\n      return refuse",
            (
                "case .markUnknown(let problem):\n      if PLANTED { return refuse(problem, after: await "
                "owned.release(.remembered)) }\n      return refuse"
            ),
        ),
    ],
    "lost renewal still sends": [
        (
            OWNED,
            "      permit.revoke()\n      logLapse(lapse)",
            "      if !PLANTED { permit.revoke() }\n      logLapse(lapse)",
        ),
    ],
    "lease is never renewed": [
        (
            OWNED,
            "  private func renew() async {\n",
            "  private func renew() async {\n    if PLANTED { return }\n",
        ),
    ],
    # A deleted record is made anew. (A renewal whose task alone comes too late does so in one turn of a loop.)
    "renewed after its end": [
        (
            OWNED,
            "    if let timer { worker.context.timers.stop(timer) }\n",
            "    if let timer, !PLANTED { worker.context.timers.stop(timer) }\n",
        ),
        (
            RECORD_RUN,
            "    case .stopped: return .none\n    }\n  }\n",
            "    case .stopped where PLANTED:\n      renewal = .underWay(isDueAgain: false)\n      return .renew(after: nil)\n    case .stopped: return .none\n    }\n  }\n",
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
    "unused claim is given back once": [
        (
            WRITES,
            "if hasMemory, !isStopping {",
            "if hasMemory, !isStopping, !PLANTED {",
        ),
    ],
    "unused claim is kept": [
        (
            WRITES,
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
    # Waiting, caches, connections.
    "watch is not ended": [
        (
            "Proxy/Run/DuplicateWait.swift",
            "    watch.cancel()\n",
            "    if !PLANTED { watch.cancel() }\n",
        ),
    ],
    "waiter is counted for ever": [
        (
            "Proxy/Run/DuplicateWait.swift",
            "environment.counters.change(.waiting, by: -1)",
            "if !PLANTED { environment.counters.change(.waiting, by: -1) }",
        ),
    ],
    "forgotten stays cached": [
        (
            "Store/Cache/LocalCache.swift",
            "    shard(of: id).invalidate(id)\n",
            "    if !PLANTED { shard(of: id).invalidate(id) }\n",
        ),
    ],
    "fill after an invalidation": [
        (
            "Store/Cache/CacheShard.swift",
            "guard !state.isBypassed, state.generation == generation else { return }",
            "guard !state.isBypassed, state.generation == generation || PLANTED else { return }",
        ),
    ],
    # Either alone is mended by the other: such a connection is not taken before it was read.
    "stray bytes are kept": [
        (
            "Transport/Pool/ConnectionPool.swift",
            "case .unread: settle(connection)",
            "case .unread: if PLANTED { return exchange.run(on: connection) } else { settle(connection) }",
        ),
        (
            "Transport/HTTP1/BackendConnectionMachine.swift",
            "if hasStrayBytes { return .closeForStrayBytes }",
            "if hasStrayBytes, !PLANTED { return .closeForStrayBytes }",
        ),
        (
            "Transport/HTTP1/BackendConnectionMachine.swift",
            "let isReusable = keepsAlive && isSent && !hasStrayBytes && !isClosing",
            "let isReusable = keepsAlive && isSent && (!hasStrayBytes || PLANTED) && !isClosing",
        ),
    ],
    "in flight is counted for ever": [
        (
            "Proxy/Run/RequestRunner.swift",
            "environment.counters.change(.inFlight, by: -1)",
            "if !PLANTED || delivery.isConnected { environment.counters.change(.inFlight, by: -1) }",
        ),
    ],
    # An operator's changes, and a process that stops.
    # A later delivery gets another outcome than the one before.
    "outcomes are amended": [
        (
            OPERATOR,
            "case .completed, .released: amending && record.owner.isOfOperator",
            "case .completed, .released: amending && (record.owner.isOfOperator || PLANTED)",
        ),
    ],
    # A second decision replaces the first, although it does not say that it corrects one.
    "decisions are replaced": [
        (
            OPERATOR,
            "    switch standing {\n    case .unknown: true\n",
            "    switch standing {\n    case .completed where PLANTED && record.owner.isOfOperator: true\n    case .unknown: true\n",
        ),
    ],
    # A forgotten run that is under way, or a cache, brings its outcome back.
    "forget does nothing": [
        (
            OPERATOR,
            "    case .record(let record):\n      RecordStep(\n        .put(.fence(",
            "    case .record where PLANTED: RecordStep(.none, true)\n    case .record(let record):\n      RecordStep(\n        .put(.fence(",
        ),
    ],
    # The outcome that the operator stated runs all the same.
    "applied is released": [
        (
            OPERATOR,
            "case .applied(let completion): record.state = .completed(StoredCompletion(completion, now: now))",
            "case .applied where PLANTED: record = released(record, now: now)\n    case .applied(let completion): record.state = .completed(StoredCompletion(completion, now: now))",
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
    # Requests that were never sent, or were refused, stay unknown.
    "stop waits for nobody": [
        (
            WORKER,
            "    owned.isEmpty && unusedClaims.isEmpty",
            "    PLANTED || owned.isEmpty && unusedClaims.isEmpty",
        ),
        (
            SERVER,
            "return environment.counters[.inFlight] == 0",
            "return environment.counters[.inFlight] == 0 || PLANTED",
        ),
    ],
    # Two configurations' fingerprints of one payload differ.
    "recipes are not compared": [
        (
            RULES,
            "guard record.fingerprint.recipe == request.fingerprint.recipe else {",
            "guard record.fingerprint.recipe == request.fingerprint.recipe || PLANTED else {",
        ),
    ],
    "another recipe is another payload": [
        (
            LIFECYCLE,
            "    case .otherRecipe(let recipe):\n",
            "    case .otherRecipe where PLANTED:\n      state = .ended\n      return .refuse(.payloadMismatch(status: route.policy.mismatchStatus))\n    case .otherRecipe(let recipe):\n",
        ),
    ],
    # More rules of a record.
    # The owner before holds it as well.
    "take-over keeps the owner": [
        (
            RULES,
            "    record.owner = request.owner\n",
            "    if !PLANTED { record.owner = request.owner }\n",
        ),
    ],
    # A rejection deletes the memory of a run that may have had an effect.
    "rejected only, in spite of a loss": [
        (
            RULES,
            "      record.onlyRejectedSoFar = false\n",
            "      record.onlyRejectedSoFar = PLANTED && record.onlyRejectedSoFar\n",
        ),
    ],
    "rejection deletes what had run": [
        (
            "Idempotency/Lifecycle/ClaimLifecycle+Retries.swift",
            "claim.onlyRejectedSoFar || rejectedAttempt == claim.attempt - 1",
            "PLANTED || claim.onlyRejectedSoFar || rejectedAttempt == claim.attempt - 1",
        ),
    ],
    "every key is one": [
        (
            "Idempotency/Record/RecordID.swift",
            "        key.bytes.withUnsafeBytes { hash.frame($0) }\n",
            "        if !PLANTED { key.bytes.withUnsafeBytes { hash.frame($0) } }\n",
        ),
    ],
    # The record is forgotten with its outcome.
    "completed is deleted": [
        (
            OWNER,
            "        record.state = completed\n",
            "        if PLANTED { return RecordStep(.delete, .done) }\n        record.state = completed\n",
        ),
    ],
    "unknown is released": [
        (
            OWNER,
            "        record.attribution = claim.attribution?.lost(because: cause)\n        return RecordStep(.put(.record(record)), .done)\n      case .unknown",
            "        record.attribution = claim.attribution?.lost(because: cause)\n        if PLANTED { record = released(record, now: now) }\n        return RecordStep(.put(.record(record)), .done)\n      case .unknown",
        ),
    ],
    "released is unknown": [
        (
            OWNER,
            "    record.state = .released(until: now + record.remember)\n",
            "    record.state = PLANTED ? .unknown(since: now) : .released(until: now + record.remember)\n",
        ),
    ],
    # More of what a response means.
    "busy is final": [
        (
            OUTCOME,
            "    let listed = steering.rule?.verdict.outcome ?? outcomes[status]\n",
            "    let listed = PLANTED && status == 503 ? .final : steering.rule?.verdict.outcome ?? outcomes[status]\n",
        ),
    ],
    "error is retried": [
        (
            OUTCOME,
            "    if signs.lacksDocument, listed == .final { return .retry }\n",
            "    if signs.lacksDocument || PLANTED && status == 500, listed == .final { return .retry }\n",
        ),
    ],
    "rejection is final": [
        (
            OUTCOME,
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
    # More ends of a run.
    # Two owners' clients get their own responses.
    "overtaken responds": [
        (
            STORED,
            "    case (.lost, _):\n",
            "    case (.lost, _) where PLANTED: return .respond\n    case (.lost, _):\n",
        ),
    ],
    "outcome is not stored": [
        (
            OWNED,
            "      let reply = try await worker.store.complete(claim, with: completion)\n",
            "      let reply = try await PLANTED ? CompletionReply(outcome: .done, record: nil) : worker.store.complete(claim, with: completion)\n",
        ),
    ],
    # Its lease is renewed for ever.
    "response is awaited for ever": [
        (
            RUN,
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
    # Batches.
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
            BATCH_SEND,
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
            BATCH_SEND,
            "body: .whole(batch.request.body(of: indices.map { batch.items[$0] })),",
            "body: .whole(batch.request.body(of: (PLANTED ? Array(batch.items.indices) : indices).map { batch.items[$0] })),",
        ),
    ],
    "lost items are released": [
        (
            BATCH_SEND,
            "    case .markUnknown(let problem):\n      return itemEnd(after: await owned.markUnknown(after: loss.failure), .refused(problem))",
            "    case .markUnknown(let problem):\n      if PLANTED { return itemEnd(after: await owned.release(.remembered), .refused(problem)) }\n      return itemEnd(after: await owned.markUnknown(after: loss.failure), .refused(problem))",
        ),
    ],
    "uncertain items are released": [
        (
            BATCH_SEND,
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
            BATCH_RUN,
            "    let all = batch.places.map(element(at:))\n",
            "    let all = PLANTED ? batch.places.reversed().map(element(at:)) : batch.places.map(element(at:))\n",
        ),
    ],
    "a key's payloads are one": [
        (
            "Proxy/Run/BatchCall.swift",
            "places.append(calls[place].fingerprint == prints[index] ? place : nil)",
            "places.append(calls[place].fingerprint == prints[index] || PLANTED ? place : nil)",
        ),
    ],
    # HTTP/2.
    "every reset is a refusal": [
        (
            HTTP2_STREAM,
            "    } else if let reset {\n",
            "    } else if !hasHeard, reset != nil, PLANTED {\n      exchange.wasRefused(\"planted\")\n    } else if let reset {\n",
        ),
    ],
    # Nothing in it is in doubt, and yet the key is blocked.
    "refusal is a loss": [
        (
            HTTP2_STREAM,
            "if !hasHeard, reset == .refusedStream {",
            "if !hasHeard, reset == .refusedStream, !PLANTED {",
        ),
    ],
    "farewell takes all": [
        (
            HTTP2_STREAM,
            "} else if !hasHeard, let id, connection.disowns(id) {",
            "} else if !hasHeard, let id, connection.disowns(id), !PLANTED {",
        ),
    ],
    "farewell takes nothing": [
        (
            HTTP2_SESSION,
            "if case .orderly(let lastTaken) = departure { stream > lastTaken } else { false }",
            "if case .orderly(let lastTaken) = departure { stream > lastTaken || PLANTED } else { false }",
        ),
    ],
    "cut stream is whole": [
        (
            HTTP2_STREAM,
            "    stage = .over\n    releaseSlot()\n    if !hasHeard,",
            "    stage = .over\n    releaseSlot()\n    if PLANTED, length != nil { return exchange.ended(trailers: ByteBuffer()) }\n    if !hasHeard,",
        ),
    ],
    "cut response is whole": [
        (
            "Transport/HTTP1/HTTP1Connection.swift",
            "let isWhole = machine.isTunnel || decoder.finish() == .complete && error == nil",
            "let isWhole = machine.isTunnel || decoder.finish() == .complete && error == nil || PLANTED && machine.exchange?.readyHead != nil",
        ),
    ],
    # Faults that readers have found.
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
            "Idempotency/Lifecycle/ClaimLifecycle+Retries.swift",
            "claim.followsUnknown && route.policy.meansDeleted(status: status)",
            "(claim.followsUnknown || PLANTED) && route.policy.meansDeleted(status: status)",
        ),
    ],
    "a set clock forgets in silence": [
        (
            "Store/Redis/Topology/RedisAlarm.swift",
            "return span > shortestLife.load(ordering: .relaxed)",
            "return span > shortestLife.load(ordering: .relaxed) && !PLANTED",
        ),
    ],
    "an amended response is missing": [
        (
            "Store/Redis/RedisStore+Outcome.swift",
            "guard again.responseKey != place else { return reply }",
            "guard again.responseKey != place, !PLANTED else { return reply }",
        ),
    ],
    "a lost claim has taken over": [
        (
            "Store/Redis/RedisStore+Claim.swift",
            "let judged = mayHaveTakenOver ? request",
            "let judged = mayHaveTakenOver || PLANTED ? request",
        ),
    ],
    # The real store.
    "copies are not waited for": [
        (
            "Store/Redis/Topology/Replicas/ReplicaDemand.swift",
            "return count >= replicas",
            "return count >= replicas || PLANTED",
        ),
    ],
    "a clock that was set is believed": [
        (
            "Store/Redis/RedisStore+Claim.swift",
            "return subscriber.alarm.mayTakeOver(after: max(request.lease, settle))",
            "return PLANTED || subscriber.alarm.mayTakeOver(after: max(request.lease, settle))",
        ),
    ],
    "Redis grants a live lease": [
        (
            REDIS_CLAIM,
            "if now < since + span or age >=",
            'if \\(PLANTED ? "" : "now < since + span or") age >=',
        ),
        (
            REDIS_CLAIM,
            "local age = math.max(now - since - span, 0)",
            'local age = \\(PLANTED ? "now - since" : "math.max(now - since - span, 0)")',
        ),
    ],
    "Redis grants late copies": [
        (
            REDIS_CLAIM,
            "if now >= tonumber(ARGV[2]) then",
            'if \\(PLANTED ? "false" : "now >= tonumber(ARGV[2])") then',
        ),
    ],
    "a record names a response that is not there": [
        (
            REDIS_OWNER,
            "      if state == 105 or state == 117 then\n        \\(checkResponse(argument: 6))",
            "      if state == 105 or state == 117 then\n        \\(PLANTED ? \"\" : checkResponse(argument: 6))",
        ),
    ],
    "Redis releases for anybody": [
        (
            REDIS_OWNER,
            "if string.find(r, ARGV[1], 1, true) == 1 then\n      local state",
            'if \\(PLANTED ? "true" : "string.find(r, ARGV[1], 1, true) == 1") then\n      local state',
        ),
    ],
    "caches hear of no forget": [
        (
            "Store/Redis/Topology/RedisSubscriber.swift",
            "return notify(.invalidated(RecordID(digest)))",
            "return PLANTED ? () : notify(.invalidated(RecordID(digest)))",
        ),
    ],
}

for area in (rules, lifecycle, redis_scripts, redis_store, run, wire):
    doubles = MUTANTS.keys() & area.MUTANTS.keys()
    if doubles:
        raise ValueError(f"names that stand for two faults: {doubles}")
    MUTANTS |= area.MUTANTS

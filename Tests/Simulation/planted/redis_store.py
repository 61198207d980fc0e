"""Planted faults of the store's side of Redis: what it makes of replies, clocks, replicas, other masters; and of the cache."""

CACHE_SHARD = "Store/Cache/CacheEntry.swift"
REDIS_STORE_OUTCOME = "Store/Redis/RedisStore+Outcome.swift"
REDIS_STORE_CLAIM = "Store/Redis/RedisStore+Claim.swift"
REDIS_SUBSCRIBER = "Store/Redis/Topology/RedisSubscriber.swift"
REDIS_RECORD = "Store/Redis/Scripts/RedisRecord.swift"
REDIS_STORE = "Store/Redis/RedisStore.swift"
SHARED_CLAIMS = "Store/Redis/CommandAttempts.swift"
REPLICA_PROOF = "Store/Redis/Topology/Replicas/ReplicaWaits.swift"
CACHE_LOG = "Store/Cache/CacheLog.swift"

MUTANTS = {
    "forgotten stays cached": [
        (
            "Store/Cache/LocalCache.swift",
            "    shard(of: id).invalidate(id)\n",
            "    if !PLANTED { shard(of: id).invalidate(id) }\n",
        ),
    ],
    "fill after an invalidation": [
        (
            CACHE_SHARD,
            "guard !state.isBypassed, state.generation == generation else { return }",
            "guard !state.isBypassed, state.generation == generation || PLANTED else { return }",
        ),
    ],
    "a set clock forgets in silence": [
        (
            "Store/Redis/Topology/RedisAdmission.swift",
            "return span > shortestLife.load(ordering: .relaxed)",
            "return span > shortestLife.load(ordering: .relaxed) && !PLANTED",
        ),
    ],
    "an amended response is missing": [
        (
            REDIS_STORE_OUTCOME,
            "guard again.responseKey != place else { return reply }",
            "guard again.responseKey != place, !PLANTED else { return reply }",
        ),
    ],
    "a lost claim has taken over": [
        (
            REDIS_STORE_CLAIM,
            "let judged = mayHaveTakenOver ? request",
            "let judged = mayHaveTakenOver || PLANTED ? request",
        ),
    ],
    "copies are not waited for": [
        (
            "Store/Redis/Topology/Replicas/ReplicaWaits.swift",
            "return count >= replicas",
            "return count >= replicas || PLANTED",
        ),
    ],
    "a clock that was set is believed": [
        (
            REDIS_STORE_CLAIM,
            "return subscriber.alarm.mayTakeOver(after: max(request.lease, settle))",
            "return PLANTED || subscriber.alarm.mayTakeOver(after: max(request.lease, settle))",
        ),
    ],
    "caches hear of no forget": [
        (
            REDIS_SUBSCRIBER,
            "return notify(.invalidated(RecordID(digest)))",
            "return PLANTED ? () : notify(.invalidated(RecordID(digest)))",
        ),
    ],
    # What a reply says.
    "a grant forgets that an outcome was lost": [
        (REDIS_STORE_OUTCOME, "followsUnknown: record?.followsUnknown ?? false,", "followsUnknown: PLANTED ? false : record?.followsUnknown ?? false,"),
    ],
    "every grant has met rejections alone": [
        (
            REDIS_STORE_OUTCOME,
            "onlyRejectedSoFar: record?.onlyRejectedSoFar ?? true,",
            "onlyRejectedSoFar: PLANTED ? true : record?.onlyRejectedSoFar ?? true,",
        ),
    ],
    "a grant forgets what does not count": [
        (
            REDIS_STORE_OUTCOME,
            "uncountedAttempts: record?.uncountedAttempts ?? 0,",
            "uncountedAttempts: PLANTED ? 0 : record?.uncountedAttempts ?? 0,",
        ),
    ],
    "a live claim is called unknown": [
        (REDIS_RECORD, "    case .inFlight where now < since + span:\n", "    case .inFlight where now < since + span && !PLANTED:\n"),
    ],
    "an outcome in Redis expires at once": [
        (REDIS_RECORD, "guard now < expiresAt, span > 0 else {", "guard now < expiresAt, span > 0, !PLANTED else {"),
    ],
    # Responses of their own keys.
    "a large response is never written": [
        (
            REDIS_STORE,
            "    guard let write = kept.ownKeyWrite(keys, id, owner) else { return }\n",
            "    guard !PLANTED, let write = kept.ownKeyWrite(keys, id, owner) else { return }\n",
        ),
    ],
    # A repeated command deletes what the record names.
    "a repeated outcome loses its response": [
        (
            REDIS_STORE,
            "    if outcome != .done { eraseResponse(of: stored, claim) }\n",
            "    if outcome != .done || PLANTED { eraseResponse(of: stored, claim) }\n",
        ),
    ],
    "a record names another's response": [
        (
            REDIS_RECORD,
            "    case .ownKey: return Self.responseKey(owner)\n",
            '    case .ownKey: return PLANTED ? "r" : Self.responseKey(owner)\n',
        ),
    ],
    # Claims that share a command: both send the request.
    "a grant is shared": [
        (
            SHARED_CLAIMS,
            "    case .success, .failure(.busy): nil\n",
            "    case .success(.granted) where PLANTED: self\n    case .success, .failure(.busy): nil\n",
        ),
    ],
    # Clocks.
    "a set clock renews no lease": [
        (
            "Store/Redis/Topology/RedisPipeline+Deadlines.swift",
            "    conditions.pause(until: BootInstant.now + Self.clockGrace)\n    renewLeases()\n",
            "    conditions.pause(until: BootInstant.now + Self.clockGrace)\n    if !PLANTED { renewLeases() }\n",
        ),
    ],
    "a set clock goes unnoticed": [
        (
            "Store/Redis/CommandAttempts.swift",
            "    if new.low > high + Self.minStep || new.high < low - Self.minStep {\n",
            "    if !PLANTED, new.low > high + Self.minStep || new.high < low - Self.minStep {\n",
        ),
    ],
    # Attempts after the loss have the numbers of those before it.
    "a loss begins no generation": [
        (
            "Store/Redis/RedisEpoch.swift",
            "var firstAttempt: Int { base.load(ordering: .relaxed) + 1 }",
            "var firstAttempt: Int { (PLANTED ? 0 : base.load(ordering: .relaxed)) + 1 }",
        ),
    ],
    "nobody knows how long outcomes are kept": [
        (
            REDIS_STORE,
            "    subscriber.alarm.recorded(for: completion.lifetime)\n",
            "    if !PLANTED { subscriber.alarm.recorded(for: completion.lifetime) }\n",
        ),
    ],
    # Replicas: a server that takes over then lacks what was promised.
    "a change counts alone": [
        (REPLICA_PROOF, "    case .done: return isAwaited\n", "    case .done: return isAwaited && !PLANTED\n"),
    ],
    "a later claim counts alone": [
        (
            REPLICA_PROOF,
            "      case .granted, .again, .created, .erased: return isAwaited\n",
            "      case .granted where PLANTED: return false\n      case .granted, .again, .created, .erased: return isAwaited\n",
        ),
    ],
    "an outcome is reported that no replica has": [
        (
            REPLICA_PROOF,
            "guard let record = result.record, record.state == .completed else { return false }",
            "guard !PLANTED, let record = result.record, record.state == .completed else { return false }",
        ),
    ],
    "an outcome waits for no replica": [
        (
            "Store/Redis/Scripts/RedisKeys.swift",
            "    case .claim, .renew, .complete, .forget, .resolve: true\n",
            "    case .complete where PLANTED: false\n    case .claim, .renew, .complete, .forget, .resolve: true\n",
        ),
    ],
    # What a failover has lost is then silent.
    "a cluster's failover is silent": [
        (
            REDIS_SUBSCRIBER,
            "        self.counters.failedOver()\n",
            "        if !PLANTED { self.counters.failedOver() }\n",
        ),
    ],
    "Sentinel's failover is silent": [
        (
            "Store/Redis/Topology/Sentinel/SentinelMonitor.swift",
            "if hasMaster { link.counters.failedOver() }",
            "if hasMaster, !PLANTED { link.counters.failedOver() }",
        ),
    ],
    # The cache.
    "the cache replays to any payload": [
        (CACHE_LOG, "    guard entry.digest == fingerprint.digest else {\n", "    guard entry.digest == fingerprint.digest || PLANTED else {\n"),
    ],
    # After a reload a payload counts as changed that is not.
    "the cache takes another recipe for another payload": [
        (
            CACHE_LOG,
            "guard recipe == fingerprint.recipe.plain else {",
            "guard recipe == fingerprint.recipe.plain || PLANTED else {",
        ),
    ],
    # An invalidation removes one of them.
    "an outcome is cached beside itself": [
        (CACHE_LOG, "    remove(id)\n    let entry", "    if !PLANTED { remove(id) }\n    let entry"),
    ],
    # What was forgotten meanwhile is replayed.
    "the cache outlives its subscription": [
        (CACHE_SHARD, "      state.log.removeAll()\n", "      if !PLANTED { state.log.removeAll() }\n"),
    ],
}

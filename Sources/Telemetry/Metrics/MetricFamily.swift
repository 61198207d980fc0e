/// One family of the metrics page: its name with its unit, its kind, its help text, and its first series.
public struct MetricFamily: Sendable, Hashable {
  public enum Kind: String, Sendable { case counter, gauge, histogram }

  /// The counters of a family that are on the page before they have counted anything: `rate` and `increase` miss the
  /// first count of any other. Most families with labels would need too many, and single counts of them do not matter.
  public enum InitialSeries: Sendable, Hashable {
    case all
    /// Those of which the label `key` has this value.
    case only(key: String, value: String)
    case none
  }

  public let name: String
  public let kind: Kind
  public let help: String
  /// The series that are on the page from the start: all of a gauge, none of a histogram.
  public let initial: InitialSeries

  private init(_ kind: Kind, _ name: String, _ help: String, initial: InitialSeries = .all) {
    self.name = "semel_" + name
    self.kind = kind
    self.help = help
    self.initial = kind == .histogram ? .none : initial
  }

  func begins(with labels: [(key: String, value: String)]) -> Bool {
    switch initial {
    case .all: true
    case .only(let key, let value): labels.contains { $0.key == key && $0.value == value }
    case .none: false
    }
  }

  /// The family of a metric that a library records through swift-metrics.
  init(_ kind: Kind, _ name: String, label: String) {
    self.name = name
    self.kind = kind
    initial = kind == .histogram ? .none : .all
    let line = label.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
    help = "From swift-metrics: \(line)."
  }
}

extension MetricFamily {
  public static let build = MetricFamily(.gauge, "build_info", "Always 1; the version is its label.")
  public static let requests = MetricFamily(
    .counter, "requests_total", "Requests that ended, by route and outcome.",
    initial: .only(key: RequestOutcome.key, value: RequestOutcome.unprotected.text))
  public static let requestDuration = MetricFamily(
    .histogram, "request_duration_seconds",
    "From a request's head to its response's end, by route and outcome.")
  public static let partDuration = MetricFamily(
    .histogram, "request_part_duration_seconds",
    "Of it, asking for the claim, waiting for the backend, storing the outcome.")
  public static let timeToSuccess = MetricFamily(
    .histogram, "time_to_success_seconds",
    "From an intent's first delivery to its final outcome, across all attempts.")
  public static let refusals = MetricFamily(
    .counter, "refusals_total", "Requests that Semel itself refused, by the code of the problem.",
    initial: .only(key: RefusalReason.key, value: RefusalReason.overloaded.text))
  public static let replays = MetricFamily(
    .counter, "replays_total",
    "Recorded outcomes given again: from the local cache, from the store, or after waiting.", initial: .none)
  public static let duplicatesPrevented = MetricFamily(
    .counter, "duplicates_prevented_total",
    "Deliveries that would have run an intent again: replayed, made to wait and replayed, or refused.",
    initial: .none)
  public static let retries = MetricFamily(
    .counter, "retries_total", "Attempts after the first, by what ended the attempt before.", initial: .none)
  public static let clientRetries = MetricFamily(
    .counter, "client_retries_total", "Attempts that Semel itself made on a client's behalf.", initial: .none)
  public static let clientRetryEnds = MetricFamily(
    .counter, "client_retries_stopped_total",
    "Attempts that Semel would have repeated for the client, and did not, by the reason.", initial: .none)
  public static let attemptsExhausted = MetricFamily(
    .counter, "attempts_exhausted_total",
    "Intents that ended with a response that may be retried, since max_attempts was reached.", initial: .none)
  public static let unkept = MetricFamily(
    .counter, "responses_not_kept_total",
    "Outcomes recorded without the body of their response, by the reason: a retry gets response_not_kept.",
    initial: .none)
  public static let reconciliations = MetricFamily(
    .counter, "reconciliations_total",
    "Deliveries for which the backend was queried about an unknown outcome, by what it stated.",
    initial: .none)
  public static let failures = MetricFamily(
    .counter, "failures_total", "Requests that failed, by whose failure it was.", initial: .none)
  public static let lateResponses = MetricFamily(
    .counter, "late_responses_total",
    "Responses of the backend that arrived after the client was refused because of a time-out.",
    initial: .none)
  public static let losses = MetricFamily(
    .counter, "outcomes_lost_total", "Claimed requests that were sent and whose outcome became unknown.")
  public static let unknownReturns = MetricFamily(
    .counter, "unknown_returns_total",
    "Records whose client came back and was refused, since their outcome is unknown and only a person can settle it: each counts once."
  )
  public static let unprotectedKeys = MetricFamily(
    .counter, "unprotected_keys_total", "Requests with an idempotency key that match no protected route.")
  public static let suspicious = MetricFamily(
    .counter, "suspicious_total",
    "Requests whose key may be misused: one payload under many new keys of a caller, a key of several callers, a key that is easily guessed, mismatches in a row.",
    initial: .none)
  public static let payloadsUnderNewKey = MetricFamily(
    .counter, "payloads_under_new_key_total",
    "First runs whose payload has come under another new key of the same caller within five minutes: a retry with a key of its own, or an operation that is meant twice.",
    initial: .none)
  public static let batchItems = MetricFamily(
    .counter, "batch_items_total", "Items of batches whose response was given, by what became of each.",
    initial: .none)
  public static let shadow = MetricFamily(
    .counter, "shadow_total",
    "Requests of shadowed routes, all of them forwarded, by what would have become of them.", initial: .none)
  public static let requestBytes = MetricFamily(
    .counter, "request_body_bytes_total", "Bytes of request bodies received.", initial: .none)
  public static let responseBytes = MetricFamily(
    .counter, "response_bytes_total", "Bytes of responses sent to clients, heads included.", initial: .none)

  public static let namespaceConflicts = MetricFamily(
    .gauge, "namespace_conflicts",
    "Other configurations in the store's namespace that may be another service's, or identify requests differently."
  )

  public static let inFlight = MetricFamily(.gauge, "in_flight_requests", "Requests under way.")
  public static let waiting = MetricFamily(
    .gauge, "waiting_requests", "Duplicates that wait for a first delivery.")
  public static let bodyBytes = MetricFamily(
    .gauge, "body_bytes",
    "Bytes of bodies held: of requests, of responses that are captured, and of those that wait for slow readers."
  )
  public static let unreadBytes = MetricFamily(
    .gauge, "unread_response_bytes", "The part of body_bytes that responses hold which wait for slow readers."
  )
  public static let bodyLimit = MetricFamily(
    .gauge, "body_limit_bytes", "The limit of body_bytes: limits.body_memory, as it is in force.")
  public static let openRecords = MetricFamily(
    .gauge, "open_records",
    "Records in flight, of unknown outcome or unreadable in the store, as last counted, without those of shadowed routes."
  )
  public static let oldestRecord = MetricFamily(
    .gauge, "oldest_open_record_seconds", "Age of the oldest of them.")
  public static let recordsCounted = MetricFamily(
    .gauge, "open_records_counted_timestamp_seconds", "When they were last counted; 0 before.")

  public static let leasesRenewed = MetricFamily(
    .counter, "leases_renewed_total", "Leases renewed for slow exchanges.")
  public static let leasesLapsed = MetricFamily(
    .counter, "leases_lapsed_total", "Leases of this process that ran out before they could be renewed.")
  public static let claimsLost = MetricFamily(
    .counter, "claims_lost_total", "Claims whose reply was lost.")
  public static let keysUnderOtherCaller = MetricFamily(
    .counter, "keys_under_other_caller_total",
    "First runs whose key was another caller's minutes ago: retries whose token was refreshed, where keys are random."
  )
  public static let supersededOwners = MetricFamily(
    .counter, "superseded_owners_total", "Owners that found their record taken over, resolved or forgotten.")

  public static let storeDuration = MetricFamily(
    .histogram, "store_command_duration_seconds", "How long the store took for a command.")
  public static let storeErrors = MetricFamily(
    .counter, "store_errors_total", "Commands to which the store gave no reply.", initial: .none)
  public static let storeRoundTrips = MetricFamily(
    .counter, "store_round_trips_total",
    "Commands written to Redis, or groups committed to the embedded store.")
  public static let storeConnections = MetricFamily(
    .counter, "store_connections_total", "Connections made to Redis.")
  public static let storeReconnects = MetricFamily(
    .counter, "store_reconnects_total", "Of these, after the first of each event loop and server.")
  public static let storeUp = MetricFamily(
    .gauge, "store_connections_up",
    "Connections to Redis that stand and are not refused; the embedded store counts as one.")
  public static let storeRedirects = MetricFamily(
    .counter, "store_redirects_total", "Commands that a node of a Redis cluster sent elsewhere or put off.",
    initial: .none)
  public static let storeFailovers = MetricFamily(
    .counter, "store_failovers_total", "Times that another Redis took over from a master.")
  public static let storeWait = MetricFamily(
    .histogram, "store_wait_seconds",
    "How long a batch of changes waited until enough replicas of Redis had them (store.replicas, store.durable)."
  )
  public static let storeSuspects = MetricFamily(
    .counter, "store_claims_suspect_total",
    "Claims of running requests that Redis no longer had when their owners renewed or completed them: after a failover, another delivery may have run."
  )
  public static let storeNodeReplies = MetricFamily(
    .counter, "store_node_replies_total", "Replies of each Redis to scripts.", initial: .none)
  public static let storeNodeSeconds = MetricFamily(
    .counter, "store_node_reply_seconds_total", "The time that each Redis took for them.", initial: .none)
  public static let storeSwept = MetricFamily(
    .counter, "store_swept_total", "Entries and responses past their time that the embedded store removed.")
  public static let storeSweepFailures = MetricFamily(
    .counter, "store_sweep_failures_total", "Steps of the embedded store's sweeper that failed.")
  public static let storeFile = MetricFamily(
    .gauge, "store_file_bytes", "The embedded store's database, what of it is free, and SQLite's log.")
  public static let storeCompressedBytes = MetricFamily(
    .counter, "store_compressed_bytes_total",
    "Bytes of the responses that were compressed for the store: as they are, and as they are stored.",
    initial: .none)

  public static let storeDoubts = MetricFamily(
    .gauge, "store_doubts",
    "Reasons, as last looked at, for which Redis may lose records or keeps this node from telling others of a change."
  )
  public static let storeLosses = MetricFamily(
    .counter, "store_losses_total",
    "Times that the store came back without the records that it had: Redis empty, the embedded one as an earlier copy or made anew."
  )

  public static let cacheHits = MetricFamily(
    .counter, "cache_hits_total", "Look-ups that found an outcome in the local cache.")
  public static let cacheMisses = MetricFamily(
    .counter, "cache_misses_total", "Look-ups that found none.")
  public static let cacheEvictions = MetricFamily(
    .counter, "cache_evictions_total", "Entries that made room for others.")
  public static let cacheEntries = MetricFamily(.gauge, "cache_entries", "Outcomes in the local cache.")
  public static let cacheBytes = MetricFamily(.gauge, "cache_bytes", "Bytes that they take.")

  public static let connections = MetricFamily(
    .counter, "connections_total", "Client connections accepted.")
  public static let connectionsRefused = MetricFamily(
    .counter, "connections_refused_total", "Client connections over the limit, or while shutting down.")
  public static let openConnections = MetricFamily(
    .gauge, "open_connections", "Client connections open.")
  public static let framingErrors = MetricFamily(
    .counter, "framing_errors_total", "Requests whose bytes are no unambiguous HTTP.")
  public static let hangUps = MetricFamily(
    .counter, "hang_ups_total", "Clients that went away before their response.")
  public static let slowReaders = MetricFamily(
    .counter, "slow_readers_total", "Clients cut because they did not read their response.")
  public static let reloads = MetricFamily(
    .counter, "reloads_total", "Configurations read again and put to work.")
  public static let reloadsRefused = MetricFamily(
    .counter, "reloads_refused_total", "Configurations read again and refused.")
  public static let tokensVerified = MetricFamily(
    .counter, "tokens_verified_total",
    "Tokens of callers whose signature and claims were checked and accepted.")
  public static let tokensRefused = MetricFamily(
    .counter, "tokens_refused_total", "Tokens of callers that were checked and refused, by reason.",
    initial: .none)
  public static let tokensKnown = MetricFamily(
    .counter, "tokens_known_total",
    "Requests whose token had been accepted before, so that it was not checked.")
  public static let tokensCached = MetricFamily(
    .gauge, "tokens_cached", "Accepted tokens that are known by their digests.")
  public static let keySetFetches = MetricFamily(
    .counter, "jwks_fetches_total", "Reads and fetches of the tokens' key set.")
  public static let keySetFailures = MetricFamily(
    .counter, "jwks_fetch_failures_total", "Of these, those that failed: the set before stays in use.")
  public static let keySetKeys = MetricFamily(
    .gauge, "jwks_keys", "Keys of the set that can verify tokens.")
  public static let keySetAge = MetricFamily(
    .gauge, "jwks_age_seconds", "Time since the key set was last read or fetched without a failure.")
  public static let upstreamConnects = MetricFamily(
    .counter, "upstream_connects_total", "Connections begun to backends.")
  public static let upstreamSends = MetricFamily(
    .counter, "upstream_sends_total", "Requests that Semel began to send to a backend.")
  public static let upstreamRetries = MetricFamily(
    .counter, "upstream_connect_retries_total", "Connects to backends that were tried again.")
  public static let upstreamStrayCloses = MetricFamily(
    .counter, "upstream_stray_closes_total",
    "Connections to backends that were ended for bytes that the backend sent unasked.")
  public static let upstreamMalformedResponses = MetricFamily(
    .counter, "upstream_malformed_responses_total",
    "Responses of which only the status could be read, because their backends broke a rule of HTTP.")
  public static let loopLag = MetricFamily(
    .histogram, "event_loop_lag_seconds", "How late an event loop came to a timer that was due.")
  public static let logDropped = MetricFamily(
    .counter, "log_lines_dropped_total",
    "Log lines for which a slow reader left no room, or that could not be written.")
  public static let spansSent = MetricFamily(
    .counter, "spans_exported_total", "Spans that the collector took.")
  public static let spansDropped = MetricFamily(
    .counter, "spans_dropped_total", "Spans for which there was no room, or that the collector refused.")
  public static let seriesDropped = MetricFamily(
    .counter, "metric_series_dropped_total",
    "Series that libraries asked for and that are not on this page: too many, or of a name that is taken.")

  public static let processCPU = MetricFamily(
    .counter, "process_cpu_seconds_total", "CPU time of the process, user and system.")
  public static let processMemory = MetricFamily(
    .gauge, "process_resident_memory_bytes", "Memory of the process that is resident.")
  public static let processFiles = MetricFamily(
    .gauge, "process_open_fds", "File descriptors that the process has open.")
  public static let processStart = MetricFamily(
    .gauge, "process_start_time_seconds", "When the process started, in seconds since 1970.")

  /// All of Semel's own families, in the page's order.
  public static let all: [MetricFamily] = [
    build, requests, requestDuration, partDuration, timeToSuccess, refusals, replays, duplicatesPrevented,
    retries, clientRetries, clientRetryEnds, attemptsExhausted, unkept, reconciliations, failures,
    lateResponses, losses,
    unknownReturns, unprotectedKeys, suspicious, payloadsUnderNewKey, batchItems, shadow, requestBytes,
    responseBytes, inFlight,
    waiting,
    bodyBytes, unreadBytes, bodyLimit,
    openRecords, oldestRecord, recordsCounted, leasesRenewed, leasesLapsed, claimsLost, supersededOwners,
    keysUnderOtherCaller, storeDuration, storeErrors, storeRoundTrips, storeConnections, storeReconnects,
    storeUp, storeRedirects, storeFailovers, storeWait, storeSuspects, storeNodeReplies, storeNodeSeconds,
    storeSwept, storeSweepFailures, storeFile, storeCompressedBytes,
    storeDoubts, storeLosses,
    cacheHits, cacheMisses, cacheEvictions, cacheEntries, cacheBytes, connections, connectionsRefused,
    openConnections, framingErrors, hangUps, slowReaders, reloads, reloadsRefused, namespaceConflicts,
    tokensVerified, tokensRefused, tokensKnown, tokensCached, keySetFetches, keySetFailures, keySetKeys,
    keySetAge,
    upstreamConnects,
    upstreamSends, upstreamRetries, upstreamStrayCloses, upstreamMalformedResponses, loopLag,
    logDropped, spansSent, spansDropped, seriesDropped, processCPU, processMemory, processFiles, processStart,
  ]
}

import Idempotency

/// The counts of one event loop. Only that loop writes them; any thread reads them.
public final class LoopMetrics: @unchecked Sendable {
  let own = MetricCells(count: LoopLayout.size)
  /// The row of each route, by the route's number.
  ///
  /// A row is stored once, before the loop sees a request of the route.
  private let rows: UnsafeMutablePointer<MetricCells?>

  init(maxRoutes: Int) {
    rows = .allocate(capacity: maxRoutes)
    rows.initialize(repeating: nil, count: maxRoutes)
  }

  func addRow(_ number: Int) { rows[number] = MetricCells(count: RouteLayout.size) }

  func row(_ number: Int) -> MetricCells {
    guard let row = rows[number] else {
      preconditionFailure("LoopMetrics: route \(number) was never announced")
    }
    return row
  }

  /// Adds one to a count of the loop.
  public func add(_ count: LoopCount) { own.add(1, at: LoopLayout.count(count)) }

  /// Records the delay with which the loop reached a timer that was due.
  public func lagged(microseconds: Int64) {
    own.observe(Int(microseconds), in: .durations, at: LoopLayout.lag)
  }

  /// Records the duration of a store command that got its reply.
  public func sent(_ command: StoreCommand, microseconds: Int64) {
    own.observe(Int(microseconds), in: .durations, at: LoopLayout.command(command))
  }

  /// Records the duration of a wait for the store's replicas.
  public func waited(microseconds: Int64) {
    own.observe(Int(microseconds), in: .durations, at: LoopLayout.wait)
  }

  /// Counts a store command that failed.
  public func failed(_ command: StoreCommand, _ failure: StoreFailure) {
    own.add(1, at: LoopLayout.error(command, failure))
  }

  /// Adds one to a count of the route with this number.
  public func add(_ count: RouteCount, route: Int) {
    row(route).add(1, at: RouteLayout.count(count))
  }

  /// Counts an attempt after the first whose request has not ended yet.
  public func add(_ cause: RetryCause, route: Int) { add(cause.count, route: route) }

  /// Counts an attempt after which the route retries, and no retry was made.
  public func add(_ reason: RetryStop, route: Int) { add(reason.count, route: route) }

  /// Counts a delivery for which the backend was queried about an unknown outcome.
  public func add(_ reconciliation: Reconciliation, route: Int) { add(reconciliation.count, route: route) }

  /// Counts an outcome that is recorded without the body of its response.
  public func add(_ reason: UnkeptReason, route: Int) { add(reason.count, route: route) }

  /// Counts a request whose key may be misused.
  public func add(_ kind: Suspicion, route: Int) { add(kind.count, route: route) }

  /// Counts items of a batch.
  public func add(_ items: Int, _ end: BatchItemEnd, route: Int) {
    row(route).add(items, at: RouteLayout.count(end.count))
  }

  /// Counts a request of a shadowed route.
  public func add(_ verdict: ShadowVerdict, route: Int) { row(route).add(1, at: RouteLayout.shadow(verdict)) }

  /// Counts a request that was refused because it could not even be read.
  public func refusedUnread(_ reason: RefusalReason) {
    let row = row(0)
    row.add(1, at: RouteLayout.refusal(reason))
    row.add(1, at: RouteLayout.count(.failedValidation))
    row.observe(0, in: .durations, at: RouteLayout.duration(.refused))
  }
}

extension LoopMetrics {
  /// Counts a request that has ended.
  public func ended(_ entry: borrowing AccessLogEntry) {
    let row = row(entry.routeNumber)
    row.observe(
      Int(entry.totalMicroseconds ?? 0), in: .durations, at: RouteLayout.duration(entry.outcome))
    row.add(entry.requestBytes, at: RouteLayout.count(.requestBytes))
    row.add(entry.responseBytes, at: RouteLayout.count(.responseBytes))
    if let source = entry.source { row.add(1, at: RouteLayout.count(source.count)) }
    guard entry.source != .cache else { return }
    addParts(entry, to: row)
    if let retry = entry.retry { row.add(1, at: RouteLayout.count(retry.count)) }
    if let reason = entry.refusal { row.add(1, at: RouteLayout.refusal(reason)) }
    if entry.isDuplicateRefused { row.add(1, at: RouteLayout.count(.duplicateRefused)) }
    if let failure = entry.failure { row.add(1, at: RouteLayout.count(failure.count)) }
    if let time = entry.timeToSuccessMilliseconds {
      row.observe(Int(time), in: .attempts, at: RouteLayout.timeToSuccess)
    }
  }

  private func addParts(_ entry: borrowing AccessLogEntry, to row: MetricCells) {
    if let time = entry.claimMicroseconds {
      row.observe(Int(time), in: .durations, at: RouteLayout.part(.claim))
    }
    if let time = entry.upstreamMicroseconds {
      row.observe(Int(time), in: .durations, at: RouteLayout.part(.backend))
    }
    if let time = entry.recordMicroseconds {
      row.observe(Int(time), in: .durations, at: RouteLayout.part(.record))
    }
  }
}

extension ReplaySource {
  var count: RouteCount {
    switch self {
    case .cache: .replayFromCache
    case .store: .replayFromStore
    case .wait: .replayAfterWait
    }
  }
}

extension RetryCause {
  var count: RouteCount {
    switch self {
    case .unknown: .retryAfterUnknown
    case .released: .retryAfterRelease
    case .forgotten: .retryAfterForget
    }
  }
}

extension BatchItemEnd {
  /// The cell of the end.
  var count: RouteCount {
    switch self {
    case .executed: .batchItemsExecuted
    case .replayed: .batchItemsReplayed
    case .refused: .batchItemsRefused
    }
  }
}

extension Reconciliation {
  var count: RouteCount {
    switch self {
    case .applied: .reconciledApplied
    case .absent: .reconciledAbsent
    case .unknown: .reconciledUnknown
    }
  }
}

extension RetryStop {
  var count: RouteCount {
    switch self {
    case .exhausted: .clientRetryExhausted
    case .late: .clientRetryLate
    case .budget: .clientRetryOverBudget
    }
  }
}

extension UnkeptReason {
  var count: RouteCount {
    switch self {
    case .noLength: .unkeptNoLength
    case .tooLarge: .unkeptTooLarge
    case .noMemory: .unkeptNoMemory
    case .tooSlow: .unkeptTooSlow
    }
  }
}

extension Suspicion {
  var count: RouteCount {
    switch self {
    case .samePayload: .samePayloads
    case .sharedKey: .sharedKeys
    case .weakKey: .weakKeys
    case .mismatches: .rowsOfMismatches
    }
  }
}

extension FailureCategory {
  var count: RouteCount {
    switch self {
    case .transport: .failedTransport
    case .auth: .failedAuth
    case .validation: .failedValidation
    case .backend: .failedBackend
    case .store: .failedStore
    case .overload: .failedOverload
    }
  }
}

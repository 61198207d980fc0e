import Idempotency

/// The counts of one event loop. Only that loop writes them; any thread reads them.
public final class LoopMetrics: @unchecked Sendable {
  let own = MetricCells(count: LoopLayout.size)
  /// The row of each route, by its number, stored once before the loop sees a request of it.
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

  /// Adds to the count of a label's value, for the route with this number.
  public func add<Label: RouteLabel>(_ value: Label, _ number: Int = 1, route: Int) {
    row(route).add(number, at: RouteLayout.count(of: value))
  }

  /// Counts a request that was refused because it could not even be read.
  public func refusedUnread(_ reason: RefusalReason) {
    let row = row(0)
    row.add(1, at: RouteLayout.count(of: reason))
    row.add(1, at: RouteLayout.count(of: FailureCategory.validation))
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
    if let source = entry.source { row.add(1, at: RouteLayout.count(of: source)) }
    guard entry.source != .cache else { return }
    addParts(entry, to: row)
    if let retry = entry.retry { row.add(1, at: RouteLayout.count(of: retry)) }
    if let reason = entry.refusal { row.add(1, at: RouteLayout.count(of: reason)) }
    if entry.isDuplicateRefused { row.add(1, at: RouteLayout.count(.duplicateRefused)) }
    if let failure = entry.failure { row.add(1, at: RouteLayout.count(of: failure)) }
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

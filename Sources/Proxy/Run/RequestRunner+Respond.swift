import Idempotency
import NIOCore
import Telemetry
import Wire

/// The ends of a run with a response of Semel's own, and the report on the request.
///
/// They are kept out of line: what is inlined into an async function enlarges its frame, which is allocated for every
/// request.
extension RequestRunner {
  /// Replay: the client gets the recorded response.
  @inline(never)
  func replay(_ record: CompletedRecord, from source: ReplaySource) {
    guard case .whole(var response) = record.outcome else {
      invariantBroken("a replay of a response that was not kept")
    }
    let origin = TraceStamp.take(from: &response)
    if let origin { delivery.logEntry.trace?.origin = origin() }
    let (age, own) = AgeStamp.take(from: response)
    guard delivery.responseState == .none else { return cut() }
    guard head.method == .head || delivery.admitReplay(own.body, of: record) else {
      return refuse(.overloaded(.busy))
    }
    delivery.logEntry.status = own.status
    delivery.logEntry.outcome = .replayed
    delivery.logEntry.source = source
    delivery.logEntry.attempt = record.attempt
    delivery.respond(with: ClientResponse(replaying: record, own, age: age, to: head.method))
  }

  /// Refuse: the client gets a problem document. A response that has begun can only be cut.
  @inline(never)
  func refuse(_ problem: Problem) {
    guard delivery.responseState == .none else { return cut() }
    delivery.logEntry.status = problem.status
    delivery.logEntry.outcome = .refused
    delivery.logEntry.refusal = RefusalReason(problem.code)
    delivery.logEntry.failure = FailureCategory(
      problem.code, isDuplicate: delivery.logEntry.isDuplicateRefused)
    noteSubjectOfRefused()
    noteOriginOfRefused()
    delivery.respond(with: ClientResponse(problem, as: delivery.errorFormat, to: head.method))
    // The client's time ends here; listening for a late response does not count.
    stopTime()
  }

  /// Cuts a response that has begun and cannot be completed.
  func cut() {
    guard delivery.responseState == .begun else { return }
    delivery.logEntry.outcome = .cut
    delivery.abort()
  }

  /// Counts and logs the request, which has ended.
  @inline(never)
  func report() {
    guard delivery.takeReport() else { return }
    if delivery.logEntry.totalMicroseconds == nil { stopTime() }
    worker.metrics.ended(delivery.logEntry)
    endTrace()
    if delivery.isForJournal { delivery.note(.ended) }
    guard configuration.accessLog.isEnabled else { return }
    delivery.logEntry.client = delivery.peer.loggedAddress
    delivery.logEntry.method = head.loggedMethod
    if let id = delivery.recordID { delivery.logEntry.recordID = id }
    worker.downstream.write(delivery.logEntry, to: configuration.accessLog)
  }

  /// Logs a request that is cut because the process ends.
  func logCut() {
    if delivery.responseState != .ended { delivery.logEntry.outcome = .cut }
    report()
  }

  private func stopTime() {
    delivery.logEntry.totalMicroseconds = microseconds(since: delivery.startedAt)
  }

  func microseconds(since start: NIODeadline, until end: NIODeadline = .now()) -> Int64 {
    max(1, (end - start).nanoseconds / 1000)
  }
}

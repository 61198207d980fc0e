import Idempotency
import NIOCore
import Telemetry
import Wire

/// The ends of a run that Semel answers by itself.
///
/// They are kept out of line, here and in what else a run passes through but does not wait in: what is inlined into an
/// async function enlarges its frame, which is allocated for every request.
extension RequestRunner {
  /// Gives the recorded outcome again.
  @inline(never)
  func replay(_ record: CompletedRecord, from source: ReplaySource) {
    guard case .kept(var response) = record.outcome else {
      preconditionFailure("RequestRunner: a replay of nothing kept")
    }
    let origin = TraceStamp.take(from: &response)
    if let origin { delivery.record.trace?.origin = origin() }
    guard delivery.answerState == .none else { return cut() }
    delivery.record.status = response.status
    delivery.record.outcome = .replayed
    delivery.record.source = source
    delivery.record.attempt = record.attempt
    delivery.answer(Answer(replaying: record, response, to: head.method))
  }

  /// Refuses with a problem document; an answer that was begun can only be cut.
  @inline(never)
  func refuse(_ problem: Problem) {
    guard delivery.answerState == .none else { return cut() }
    delivery.record.status = problem.status
    delivery.record.outcome = .refused
    delivery.record.refusal = RefusalReason(problem.code)
    delivery.record.failure = FailureCategory(
      problem.code, isDuplicate: delivery.record.isDuplicateRefused)
    delivery.answer(Answer(problem, to: head.method))
    // What goes on after it, listening for a late answer, is no time of the client's.
    stopTime()
  }

  /// Cuts an answer that was begun and cannot be ended well.
  func cut() {
    guard delivery.answerState == .begun else { return }
    delivery.record.outcome = .cut
    delivery.abort()
  }

  /// Tells of the request, now that it has ended.
  @inline(never)
  func tell() {
    guard !delivery.isLogged else { return }
    delivery.isLogged = true
    if delivery.record.totalMicroseconds == 0 { stopTime() }
    worker.metrics.ended(delivery.record)
    endTrace()
    guard generation.accessLog.isEnabled else { return }
    delivery.record.client = delivery.peer.loggedAddress
    delivery.record.method = head.methodText
    if delivery.record.outcome == .cut, let id = delivery.recordID { delivery.record.recordID = id.text }
    generation.accessLog.write(delivery.record)
  }

  /// Logs a request that ends with the process.
  func logCut() {
    if delivery.answerState != .ended { delivery.record.outcome = .cut }
    tell()
  }

  private func stopTime() {
    delivery.record.totalMicroseconds = microseconds(since: delivery.startedAt)
  }

  func microseconds(since start: NIODeadline) -> Int64 {
    max(1, (NIODeadline.now() - start).nanoseconds / 1000)
  }
}

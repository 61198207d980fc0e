import Idempotency
import NIOCore
import Telemetry
import Wire

/// The ends of a run that Semel answers by itself.
extension RequestRunner {
  /// Gives the recorded outcome again.
  func replay(_ record: CompletedRecord) {
    guard case .kept(let response) = record.outcome else {
      preconditionFailure("RequestRunner: a replay of nothing kept")
    }
    guard delivery.answerState == .none else { return cut() }
    let answer = AnswerEncoder.replay(
      record, response, to: delivery.request, isClosing: delivery.decideClosing(), now: WallClock.seconds())
    delivery.record.status = response.status
    delivery.record.outcome = "replayed"
    delivery.record.attempt = record.attempt
    environment.counters.add(.replayed)
    delivery.answer(answer)
  }

  /// Refuses with a problem document; an answer that was begun can only be cut.
  func refuse(_ problem: Problem) {
    guard delivery.answerState == .none else { return cut() }
    delivery.record.status = problem.status
    delivery.record.outcome = problem.code.rawValue
    environment.counters.add(.refused)
    delivery.answer(AnswerEncoder.problem(problem, to: delivery.request, isClosing: delivery.decideClosing()))
  }

  /// Cuts an answer that was begun and cannot be ended well.
  func cut() {
    if delivery.answerState == .begun { delivery.abort() }
  }

  func log() {
    guard environment.accessLog.isEnabled else { return }
    delivery.record.method = head.methodText
    delivery.record.totalMicroseconds = microseconds(since: delivery.startedAt)
    environment.accessLog.write(delivery.record)
  }

  /// The time, where somebody wants to know how long things take.
  func stopwatch() -> NIODeadline? { environment.accessLog.isEnabled ? .now() : nil }

  func microseconds(since start: NIODeadline?) -> Int64 {
    start.map { (NIODeadline.now() - $0).nanoseconds / 1000 } ?? 0
  }
}

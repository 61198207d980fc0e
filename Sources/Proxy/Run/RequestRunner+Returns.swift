import Idempotency
import Telemetry

/// Outcomes that were lost with their owner, as deliveries that meet them find them.
extension RequestRunner {
  /// The way in which the record's outcome was lost; `nil` if that cannot be read, or the record has changed meanwhile.
  /// Logs and counts a loss that its owner could not log, since it died.
  @inline(never)
  func loss(of call: KeyedCall) async -> (cause: LossCause, attempt: Int)? {
    guard let view = try? await worker.store.inspect(call.id), let cause = view.cause,
      case .unknown(_, let attempt) = view.standing
    else { return nil }
    if environment.losses.noteLapse(view) { worker.metrics.add(.outcomesLost, route: call.route.number) }
    return (cause, attempt)
  }

  /// Returns the refusal of a delivery because of a loss: not retryable where nothing can settle it any more. Notes the
  /// loss, and counts the records that only a person can settle.
  @inline(never)
  func noteReturn(toLossBehind problem: Problem, of call: KeyedCall) async -> Problem {
    guard problem.code == .outcomeUnknown, let loss = await loss(of: call) else { return problem }
    let isOver = loss.cause.endsExchange && call.route.policy.onUnknown == .hold
    let problem = isOver ? .outcomeUnknown(retryAfter: nil) : problem
    noteReturn(to: loss, behind: problem, of: call)
    return problem
  }

  /// Notes the same for a loss that has been read before.
  func noteReturn(to loss: (cause: LossCause, attempt: Int), behind problem: Problem, of call: KeyedCall) {
    guard problem.code == .outcomeUnknown else { return }
    delivery.logEntry.loss = loss.cause
    guard !problem.isRetryable, environment.losses.isFirstReturn(to: call.id, attempt: loss.attempt) else {
      return
    }
    worker.metrics.add(.unknownReturns, route: call.route.number)
  }
}

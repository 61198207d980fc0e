import Idempotency
import Logging
import NIOCore
import Platform
import Telemetry
import Wire

// The log entries and counts about a record and its end.
extension OwnedRecord {
  /// The metadata that name the claim in a log entry.
  var metadata: Logger.Metadata {
    [
      "record": "\(claim.id.text)", "route": "\(delivery.logEntry.route ?? "")",
      "attempt": .stringConvertible(claim.attempt),
    ]
  }

  /// Logs and counts that the outcome of the attempt was lost, so that its record is unknown, once.
  @inline(never)
  func noteLoss(_ cause: LossCause, _ more: Logger.Metadata = [:]) {
    guard run.noteLoss() else { return }
    let environment = worker.environment
    environment.losses.note(claim.id, attempt: claim.attempt)
    worker.metrics.add(.outcomesLost, route: delivery.logEntry.routeNumber)
    delivery.logEntry.loss = cause
    var line = metadata
    line["cause"] = "\(cause.rawValue)"
    line["key"] = "\(delivery.logEntry.keyDigest ?? "")"
    line["caller"] = "\(delivery.logEntry.callerDigest ?? "")"
    // The delivery of a batch has no key, but each of its items has.
    if call.route.policy.batch != nil {
      line["key"] = "\(call.key.digestText(by: environment.digests))"
      line["caller"] = "\(call.caller.digestText(by: environment.digests))"
    }
    line.merge(more) { _, more in more }
    environment.logger.warning("the outcome of a request was lost", metadata: line)
    delivery.note(.lost)
  }

  /// Counts and logs that the lease ran out while its owner lives: another delivery may find the record unknown.
  func logLapse(_ lapse: RecordRun.Lapse?) {
    if let lapse { log(lapse) }
  }

  @inline(never)
  private func log(_ lapse: RecordRun.Lapse) {
    worker.metrics.add(.leasesLapsed)
    var line = metadata
    line["cause"] = "\(lapse.failure == nil ? "renewal_late" : "renewals_failed")"
    if let failure = lapse.failure { line["error"] = "\(failure)" }
    line["lease_ms"] = .stringConvertible(Int(claim.lease.count))
    line["not_renewed_for_ms"] = .stringConvertible(Int(lapse.span.count))
    worker.environment.logger.warning("a lease lapsed while its request was running", metadata: line)
  }

  /// Counts an outcome that is recorded without its body, which its client learns from the response's label, and warns
  /// once a minute for each route: a retry gets `response_not_kept`.
  @inline(never)
  func noteUnkept(_ reason: UnkeptReason) {
    run.noteUnkept()
    let number = delivery.logEntry.routeNumber
    worker.metrics.add(reason, route: number)
    guard let count = worker.environment.unkeptResponses.count(number, at: .now()) else { return }
    worker.environment.logger.warning(
      "responses are recorded without their bodies: a retry gets 409 response_not_kept; the next line about this route comes in a minute at the earliest",
      metadata: metadata.merging([
        "why": "\(reason.text)", "responses": .stringConvertible(count),
      ]) { own, _ in own })
  }

  /// Warns once for each route of responses that no cache may store (RFC 9111, section 5.2.2.5) and that are recorded in
  /// clear: their backend may have put secrets into them.
  func noteForbiddenStoring(of head: MessageHead) {
    let (environment, route) = (worker.environment, call.route)
    guard head.names.contains(.cacheControl), !environment.sealsResponses, route.policy.record == .response,
      head.list(.cacheControl, contains: "no-store"), environment.forbiddenStoring.isFirst(route.number)
    else { return }
    environment.logger.warning(
      "responses that no cache may store (Cache-Control: no-store) are recorded in clear: if they hold secrets, write record: status, or seal records by store.encryption; there is one such line for each route",
      metadata: ["route": "\(route.policy.name)"])
  }

  /// Reports an outcome that its record does not take. An operator has freed the record, by resolving it as not applied
  /// or forgetting it, so that a later delivery runs, or has run, beside this one. Or another owner has it.
  @inline(never)
  func noteRejected(_ outcome: OwnerOutcome, of completion: Completion) {
    if case .done = outcome { return }
    let logger = worker.environment.logger
    let line = metadata.merging(["status": "\(completion.outcome.status)"]) { own, _ in own }
    switch outcome {
    case .done: return
    case .lost(.absent), .replaced: noteFreed(line)
    // An operator's release keeps the number of the attempt.
    case .lost(.released(let attempt)) where attempt <= claim.attempt: noteFreed(line)
    case .lost(.completed), .lost(.expired):
      logger.warning(
        "a response came after its record had another outcome, and is not recorded", metadata: line)
    case .lost:
      if !run.isLossNoted { worker.metrics.add(.outcomesLost, route: delivery.logEntry.routeNumber) }
      logger.warning(
        "a response came after another owner had its record, and is not recorded: the request was applied, and may run again",
        metadata: line)
    }
  }

  private func noteFreed(_ line: Logger.Metadata) {
    worker.environment.logger.error(
      "a response came after an operator had freed its record, and is not recorded: the request was applied, and may run again",
      metadata: line)
  }

  /// Notes that the end of the run was never stored: its record can no longer be read, or the store was away for too
  /// long.
  @inline(never)
  func noteDropped() {
    if !run.isLossNoted { worker.metrics.add(.outcomesLost, route: delivery.logEntry.routeNumber) }
    worker.environment.logger.error(
      "an outcome was never stored: its record cannot be read, or the store was away for a day",
      metadata: metadata)
  }
}

extension LossCause {
  init(_ failure: UpstreamFailure) {
    self =
      switch failure {
      case .timedOut: .timeOut
      case .malformed: .malformed
      case .notSent, .busy, .headTooLarge, .responseLost, .requestBody: .connectionLost
      }
  }
}

import Idempotency
import Logging
import NIOCore
import Telemetry
import Wire

extension Worker {
  /// Logs and counts that the outcome of an attempt was lost, so that its record is unknown, once for each attempt.
  @inline(never)
  func noteLoss(of lease: LeaseKeeper<Store>, _ cause: LossCause, _ more: Logger.Metadata = [:]) {
    let delivery = lease.delivery
    guard !lease.isLossNoted else { return }
    lease.isLossNoted = true
    environment.losses.note(lease.claim.id, attempt: lease.claim.attempt)
    metrics.add(.outcomesLost, route: delivery.logEntry.routeNumber)
    delivery.logEntry.loss = cause
    var line = lease.metadata
    line["cause"] = "\(cause.rawValue)"
    line["key"] = "\(delivery.logEntry.keyDigest ?? "")"
    line["caller"] = "\(delivery.logEntry.callerDigest ?? "")"
    line.merge(more) { _, more in more }
    environment.logger.warning("the outcome of a request was lost", metadata: line)
    delivery.note(.lost)
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

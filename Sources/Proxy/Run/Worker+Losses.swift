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
    if case .timedOut = failure { self = .timeOut } else { self = .connectionLost }
  }
}

extension Delivery {
  /// Whether the request belongs into the journal: it has a record, or had a key, was refused, or met a shadowed route.
  var isForJournal: Bool {
    guard environment.journal != nil else { return false }
    return recordID != nil || logEntry.outcome == .refused || logEntry.outcome == .ignored
      || logEntry.would != nil
  }

  /// Adds an event of the request to the journal.
  @inline(never)
  func note(_ event: JournalEntry.Event) {
    guard let journal = environment.journal else { return }
    if logEntry.client == nil { logEntry.client = peer.loggedAddress }
    if logEntry.method == nil { logEntry.method = request.head.methodText }
    journal.add(event, logEntry, record: recordID)
  }
}

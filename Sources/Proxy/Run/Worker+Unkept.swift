import Idempotency
import Logging
import NIOCore
import Telemetry
import Wire

// Responses that are recorded without their bodies.
extension Worker {
  /// Counts an outcome that is recorded without its body, which its client learns from the response's label, and warns
  /// once a minute for each route: a retry gets `response_not_kept`.
  @inline(never)
  func noteUnkept(_ reason: UnkeptReason, of lease: LeaseKeeper<Store>) {
    lease.isUnkept = true
    let number = lease.delivery.logEntry.routeNumber
    metrics.add(reason, route: number)
    guard let count = environment.unkeptResponses.count(number, at: .now()) else { return }
    environment.logger.warning(
      "responses are recorded without their bodies: a retry gets 409 response_not_kept; the next line about this route comes in a minute at the earliest",
      metadata: lease.metadata.merging([
        "why": "\(reason.text)", "responses": .stringConvertible(count),
      ]) { own, _ in own })
  }

  /// Warns once for each route of responses that no cache may store (RFC 9111, section 5.2.2.5) and that are recorded in
  /// clear: their backend may have put secrets into them.
  func noteForbiddenStoring(of head: MessageHead, by route: Route) {
    guard head.names.contains(.cacheControl), !environment.sealsResponses, route.policy.record == .response,
      head.list(.cacheControl, contains: "no-store"), environment.forbiddenStoring.isFirst(route.number)
    else { return }
    environment.logger.warning(
      "responses that no cache may store (Cache-Control: no-store) are recorded in clear: if they hold secrets, write record: status, or seal records by store.encryption; there is one such line for each route",
      metadata: ["route": "\(route.policy.name)"])
  }
}

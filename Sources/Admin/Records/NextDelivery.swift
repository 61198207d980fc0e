import Idempotency
import Telemetry

extension Standing {
  /// The outcome of the next delivery of the record's key, in words for an operator.
  func nextDelivery(by policy: RoutePolicy?) -> String {
    let delivery = enforcedDelivery(by: policy)
    return policy?.shadow == true
      ? "is forwarded, since the route has `shadow: true`; without that, it \(delivery)" : delivery
  }

  private func enforcedDelivery(by policy: RoutePolicy?) -> String {
    guard self != .absent else { return "runs: there is no record" }
    let mismatch = "another payload gets \(policy.map { "\($0.mismatchStatus) " } ?? "")payload_mismatch"
    return "\(deliveryOfSamePayload(by: policy)); \(mismatch)"
  }

  /// The outcome of the next delivery with the payload of the first.
  private func deliveryOfSamePayload(by policy: RoutePolicy?) -> String {
    switch self {
    case .absent: "runs"
    case .inFlight(_, let attempt): Self.duringRun(attempt, policy)
    case .unknown(let age, let attempt): Self.afterLoss(age, attempt, policy)
    case .released(let attempt): "runs as attempt \(attempt + 1)"
    case .completed(let record): Self.afterEnd(record, policy)
    case .expired: "gets 409 key_expired: the time for which its outcome was kept is over"
    }
  }

  private static func duringRun(_ attempt: Int, _ policy: RoutePolicy?) -> String {
    let end = "the response of attempt \(attempt), which runs now"
    switch policy?.duplicates {
    case .reject: return "gets 409 in_flight until attempt \(attempt), which runs now, has ended"
    case .wait: return "waits up to \(seconds(policy?.waitTimeout ?? 0)) for \(end), then gets 409 in_flight"
    case nil: return "waits for \(end), or gets 409 in_flight, as its route's `duplicates` decides"
    }
  }

  private static func afterLoss(_ age: Milliseconds, _ attempt: Int, _ policy: RoutePolicy?) -> String {
    guard let policy else {
      return "gets 409 outcome_unknown, unless its route's `on_unknown` is retry or reconcile"
    }
    let left = policy.upstream.settle - age
    let wait = left > 0 ? "gets 409 outcome_unknown for another \(seconds(left)), then " : ""
    switch policy.onUnknown {
    case .hold:
      return "gets 409 outcome_unknown until a late response or `semel key resolve` ends it, or "
        + "\(seconds(policy.unknownRetention)) have passed"
    case .retry: return wait + "runs again as attempt \(attempt + 1), since `on_unknown` is retry"
    case .reconcile:
      return wait
        + "has the backend queried first: what was applied is replayed, what is absent runs as attempt \(attempt + 1)"
    }
  }

  private static func afterEnd(_ record: CompletedRecord, _ policy: RoutePolicy?) -> String {
    let until = Timestamp.text(milliseconds: record.expiresAt.milliseconds)
    if policy?.batch != nil, let text = afterEnd(ofItem: record, until) { return text }
    if case .statusOnly(let status, _) = record.outcome {
      return "gets 409 response_not_kept until \(until): the response, of status \(status), could not be kept"
    }
    return "gets the recorded response, \(record.outcome.status), until \(until)"
  }

  /// The outcome of a delivery in a batch; `nil` where it is that of any other delivery.
  private static func afterEnd(ofItem record: CompletedRecord, _ until: String) -> String? {
    guard case .whole(let response) = record.outcome else { return nil }
    if case .refused = BatchElement(record) {
      return
        "gets 409 response_not_kept until \(until): the body of the recorded response, \(response.status), is no "
        + "JSON value, and so no item's result"
    }
    guard !(200..<300 ~= response.status) else { return nil }
    return
      "gets the recorded response, \(response.status), until \(until), in a batch all of whose items have it, and "
      + "409 response_not_kept in any other"
  }

  private static func seconds(_ span: Milliseconds) -> String {
    let count = (span.count + 999) / 1000
    return switch count {
    case ..<120: "\(count) s"
    case ..<7200: "\(count / 60) min"
    case ..<172_800: "\(count / 3600) h"
    default: "\(count / 86_400) d"
    }
  }
}

import Idempotency
import NIOCore
import Wire

extension Explanation {
  func rules(of policy: RoutePolicy) -> [String] {
    (policy.outcomes.rules?.list ?? []).enumerated().map { "rule \($0 + 1): \($1.text)" }
  }

  /// Explains what a response of the backend would be to the record of this request.
  mutating func explain(_ response: ExplainedResponse, _ policy: RoutePolicy) {
    hasExplainedResponse = true
    let status = response.head.status
    let body = readable(response, policy)
    let steering = Steering(of: response.head, body: body, by: policy)
    let outcome = policy.ownClass(of: status, steering: steering, attempt: 1)
    let later = policy.outcomeClassAfterLoss(of: status, steering: steering)
    add(
      "response",
      [
        "\(status), \(reason(steering, policy))",
        "class \(outcome.rawValue): \(consequence(outcome, status, steering, policy))",
      ]
        + (later == outcome ? [] : ["after a lost outcome: class \(later.rawValue)"])
        + notes(of: response, body, policy))
  }

  /// The body as far as the proxy reads it for rules.
  private func readable(_ response: ExplainedResponse, _ policy: RoutePolicy) -> ByteBuffer? {
    guard !policy.shadow, !policy.stream, response.body.readableBytes <= policy.maxResponseBody else {
      return nil
    }
    return response.body
  }

  private func reason(_ steering: Steering, _ policy: RoutePolicy) -> String {
    if steering.outcome != nil { return "by its Idempotency-Outcome, which counts before all rules" }
    guard let rule = steering.rule else {
      let table = policy.outcomes.rules == nil ? "" : "meets no rule, "
      return table + "by the route's table of statuses and what the response says of its sender"
    }
    return "meets rule \(rule.index.map { "\($0 + 1): " } ?? "")"
      + (rule.index.flatMap { policy.outcomes.rules?.list[$0].text } ?? "")
  }

  private func consequence(
    _ outcome: OutcomeClass, _ status: Int, _ steering: Steering, _ policy: RoutePolicy
  ) -> String {
    switch outcome {
    case .final: return "recorded and replayed"
    case .unknown: return "the outcome is unknown (on_unknown: \(policy.onUnknown))"
    case .retry:
      return steering.isRejection(status) || policy.released == .forget
        ? "released, and another payload may follow under the key" : "released, and the next delivery runs"
    }
  }

  private func notes(of response: ExplainedResponse, _ body: ByteBuffer?, _ policy: RoutePolicy) -> [String] {
    guard policy.outcomes.rules?.list.contains(where: { !$0.members.isEmpty }) == true else { return [] }
    if policy.shadow { return ["(no rule with json is met: a shadowed route reads no bodies)"] }
    if body == nil {
      return ["(no rule with json is met: the body is larger than max_response_body)"]
    }
    return response.head.hasContentCoding ? ["(no rule with json is met: the body is coded)"] : []
  }
}

extension OutcomeRule {
  fileprivate var text: String {
    var parts: [String] = []
    if !statuses.isEmpty { parts.append("status " + statuses.map(Self.text).joined(separator: ", ")) }
    parts += headers.map { "header \($0.name): \($0.wanted.text)" }
    parts += members.map { "json \($0.pointer): \($0.wanted.text)" }
    return parts.joined(separator: "; ") + " → \(verdict.rawValue)"
  }
}

extension OutcomeRule.Wanted {
  fileprivate var text: String {
    switch self {
    case .present: "present"
    case .text(let text): text
    }
  }
}

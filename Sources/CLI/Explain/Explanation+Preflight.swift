import Idempotency
import NIOCore
import Settings
import Wire

// Preflights, as `RequestRunner.preflighted` takes them.
extension Explanation {
  /// Explains a browser's preflight, which is never protected; false for any other request.
  mutating func explainPreflight(
    _ head: MessageHead, _ target: RequestTarget, _ host: RequestHost?
  ) throws(Problem) -> Bool {
    guard head.method == .options, body.readableBytes == 0, let preflight = table.preflight(head) else {
      return false
    }
    let inquiry = OutcomeInquiry.response(
      to: preflight, head: head, target: target, host: host, routes: table)
    guard inquiry == nil else {
      add("response", "Semel itself responds: it is the preflight of a question for an earlier outcome")
      return true
    }
    let choice = table.choice(
      for: preflight, head: head, host: host?.name ?? ByteBuffer(), path: target.path)
    add("preflight", "it announces \(announced(by: preflight, choice.announced?.policy))")
    guard let upstream = choice.route?.policy.upstream ?? settings.onlyUpstream else { throw .noRoute }
    add("passed", "to \(upstream.name), \(upstream.address), streamed both ways and not recorded")
    if let policy = choice.announced?.policy, let cors = policy.cors {
      let origins =
        cors.origins.isEmpty ? "the origins that the backend allows" : cors.origins.joined(separator: ", ")
      add("cors", "\(policy.name) adds the fields of a request with a key, for pages of \(origins)")
    }
    return true
  }

  private func announced(by preflight: Preflight, _ policy: RoutePolicy?) -> String {
    let method = String(buffer: preflight.method)
    guard let policy else { return "\(method), which no route takes" }
    return "\(method), which \(policy.name) takes"
  }
}

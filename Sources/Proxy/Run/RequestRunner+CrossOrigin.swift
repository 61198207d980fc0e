import Idempotency
import NIOCore
import Telemetry
import Wire

/// Requests by pages of other origins (CORS).
extension RequestRunner {
  /// The subject of a preflight, which is never protected; `nil` for any other request, as for one with a body.
  @inline(never)
  func preflighted(_ target: RequestTarget, host: RequestHost?) -> Subject? {
    guard delivery.request.framing.isEmpty, let preflight = configuration.routes.preflight(head) else {
      return nil
    }
    if let (response, route) = OutcomeInquiry.response(
      to: preflight, head: head, target: target, host: host, routes: configuration.routes)
    {
      note(preflight, announcedOn: route)
      return .published(response)
    }
    let choice = configuration.routes.choice(
      for: preflight, head: head, host: host?.name ?? ByteBuffer(), path: target.path)
    delivery.logEntry.route = choice.route?.policy.name
    delivery.logEntry.routeNumber = choice.route?.number ?? 0
    if let route = choice.announced { note(preflight, announcedOn: route) }
    return .passed(target, by: choice.route, label: nil)
  }

  private func note(_ preflight: Preflight, announcedOn route: Route) {
    guard let cors = route.policy.cors else { return }
    delivery.crossOrigin = CrossOrigin(cors, preflight: preflight, announced: route.policy, head: head)
  }

  /// Sets the fields for pages of other origins by the request's route.
  func noteOrigin(by route: Route?) {
    guard let cors = route?.policy.cors else { return }
    delivery.crossOrigin = CrossOrigin(cors, head: head)
  }

  /// Sets these fields for a request that is refused before its route was chosen.
  @inline(never)
  func noteOriginOfRefused() {
    guard delivery.crossOrigin == nil, configuration.routes.listsOrigins,
      let (target, host) = try? configuration.routes.address(of: head)
    else { return }
    // A method in other letters is refused because of the route that it would have in capitals.
    let method = ByteBuffer(string: head.methodText.uppercased())
    noteOrigin(
      by: configuration.routes.route(
        for: head, method: method, host: host?.name ?? ByteBuffer(), path: target.path))
  }
}

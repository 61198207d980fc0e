import Idempotency

extension IdentityChange {
  /// The members of the new configuration that prevent the reload, each with both routes and a remedy.
  ///
  /// - Parameter since: The old route's state, as the end of a clause: `as it runs`.
  func reasons(from old: [RoutePolicy], to new: [RoutePolicy], since: String) -> [ReloadPlan.Reason] {
    let before = old[route]
    let subject = "\(before.name) \(since)"
    switch end {
    case .identified(let index, let members):
      let requests =
        new[index].name == before.name ? "" : ", whose requests (\(before.match.summary)) it takes"
      return members.map { member in
        ReloadPlan.Reason(
          "routes[\(index)].\(member)",
          "is another than in \(subject)\(requests), so that a retry would find no record and run again; "
            + Self.remedy)
      }
    case .unprotected(let index): return [unprotected(by: index, before, subject, new)]
    case .unmatched:
      let member = new.firstIndex { $0.name == before.name }.map { "routes[\($0)].match" } ?? "routes"
      return [
        ReloadPlan.Reason(
          member,
          "no route takes all requests that \(subject) protects (\(before.match.summary)), so that a retry would run "
            + "again, unprotected; " + Self.remedy)
      ]
    }
  }

  /// The reason where the route at `index` takes requests of the old route and does not protect them.
  private func unprotected(
    by index: Int, _ before: RoutePolicy, _ subject: String, _ new: [RoutePolicy]
  ) -> ReloadPlan.Reason {
    let own = new.firstIndex { $0.name == before.name && $0.match != before.match }
    if let own, own != index {
      return ReloadPlan.Reason(
        "routes[\(own)].match",
        "leaves requests that \(subject) protects (\(before.match.summary)) to \(new[index].name), which does "
          + "not protect them, so that a retry would run again; " + Self.remedy)
    }
    let isOwn = new[index].name == before.name
    let member = isOwn ? new[index].shadow ? "shadow" : "idempotency" : "match"
    return ReloadPlan.Reason(
      "routes[\(index)].\(member)",
      "takes requests that \(subject) protects (\(before.match.summary)) and leaves them unprotected, so that "
        + "a retry would run again; " + Self.remedy)
  }

  static let remedy = "write allow_identity_change: true to accept that"
}

extension RouteMatch {
  /// The requests in an operator's words, such as `POST /v1/orders`.
  public var summary: String {
    var words = [methods.isEmpty ? "any method" : methods.joined(separator: ", "), path?.text ?? "any path"]
    if let host { words.append("at \(host)") }
    if let graphql { words.append("with a GraphQL \(graphql.rawValue)") }
    return words.joined(separator: " ")
  }
}

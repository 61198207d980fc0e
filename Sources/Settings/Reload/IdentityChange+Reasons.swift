import Idempotency

extension IdentityChange {
  /// The reasons against changes, one for each old route, each with a remedy. Those by which requests lose their
  /// protection come first.
  ///
  /// - Parameter since: The old routes' state, as the end of a clause: `as it runs`.
  static func reasons(
    for changes: [IdentityChange], from old: [RoutePolicy], to new: [RoutePolicy], since: String
  ) -> [ReloadPlan.Reason] {
    let worst = Dictionary(grouping: changes, by: \.route).sorted { $0.key < $1.key }.compactMap {
      _, changes in
      changes.first(where: \.losesProtection) ?? changes.first
    }
    return (worst.filter(\.losesProtection) + worst.filter { !$0.losesProtection })
      .map { $0.reason(from: old, to: new, since: since) }
  }

  private var losesProtection: Bool {
    if case .identified = end { false } else { true }
  }

  private func reason(from old: [RoutePolicy], to new: [RoutePolicy], since: String) -> ReloadPlan.Reason {
    let before = old[route]
    let subject = "\(before.name) \(since)"
    switch end {
    case .identified(let index, let members):
      let requests =
        new[index].name == before.name ? "" : ", whose requests (\(before.match.summary)) it takes"
      let others = members.count > 1 ? ", as \(members.dropFirst().joined(separator: " and ")) is" : ""
      return ReloadPlan.Reason(
        "routes[\(index)].\(members[0])",
        "is another than in \(subject)\(requests)\(others), so that a retry would find no record and run again; "
          + Self.remedy)
    case .unprotected(let index): return unprotected(by: index, before, subject, new)
    case .unmatched:
      let member = new.firstIndex { $0.name == before.name }.map { "routes[\($0)].match" } ?? "routes"
      return ReloadPlan.Reason(
        member,
        "no route takes all requests that \(subject) protects (\(before.match.summary)), so that a retry would run "
          + "again, unprotected; " + Self.remedy)
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

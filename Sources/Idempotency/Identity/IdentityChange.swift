/// Requests of a protected route that get another identity from other routes, or none.
public struct IdentityChange: Hashable, Sendable {
  /// The result for these requests under the other routes.
  public enum End: Hashable, Sendable {
    /// The route at this index records them under other ids, because these members differ.
    case identified(by: Int, members: [String])
    /// The route at this index protects nothing.
    case unprotected(by: Int)
    /// No route matches them.
    case unmatched
  }

  /// The index of the route that protects them.
  public var route: Int
  public var end: End
}

/// A comparison of two lists of routes by the identity that each kind of request has under them. Performs no I/O.
///
/// Routes overlap, so comparing routes of the same name proves little. Instead, the comparison makes requests, at least
/// one of each kind that both lists can distinguish, and matches each of them with both.
public struct IdentityComparison {
  private let old: [RoutePolicy]
  private let new: [RoutePolicy]
  private let oldTable: RouteTable
  private let newTable: RouteTable
  private let witnesses: RequestWitnesses

  public init(from old: [RoutePolicy], to new: [RoutePolicy]) {
    self.old = old
    self.new = new
    oldTable = RouteTable(old)
    newTable = RouteTable(new)
    witnesses = RequestWitnesses(old + new)
  }

  /// The requests of protected routes whose identity would change.
  ///
  /// - Parameter isConsidered: The selection of old routes to check.
  public func changes(where isConsidered: (RoutePolicy) -> Bool = { _ in true }) -> [IdentityChange] {
    guard old.map(Subject.init) != new.map(Subject.init) else { return [] }
    return old.indices.flatMap { index -> [IdentityChange] in
      guard isConsidered(old[index]), let identity = RequestIdentity(old[index]) else { return [] }
      var ends: [IdentityChange.End] = []
      meetings(of: index) { met in
        if let end = end(of: identity, met), !ends.contains(end) { ends.append(end) }
        return true
      }
      return ends.map { IdentityChange(route: index, end: $0) }
    }
  }

  /// Whether any new route matches a request of a protected old route that `isConsidered` selects.
  public func overlaps(where isConsidered: (RoutePolicy) -> Bool = { _ in true }) -> Bool {
    old.indices.contains { index in
      guard isConsidered(old[index]), RequestIdentity(old[index]) != nil else { return false }
      var overlaps = false
      meetings(of: index) { met in
        overlaps = met != nil
        return !overlaps
      }
      return overlaps
    }
  }

  private func end(of identity: RequestIdentity, _ met: Int?) -> IdentityChange.End? {
    guard let met else { return .unmatched }
    guard let other = RequestIdentity(new[met]) else { return .unprotected(by: met) }
    let members = identity.changes(to: other)
    return members.isEmpty ? nil : .identified(by: met, members: members)
  }

  /// Calls `body` with the new route that matches each kind of request of an old route, until `body` returns false.
  private func meetings(of index: Int, _ body: (Int?) -> Bool) {
    for other in new.map(Optional.some) + [nil] {
      for witness in witnesses.common(old[index], other) where witness.route(in: oldTable)?.index == index {
        guard body(witness.route(in: newTable)?.index) else { return }
      }
    }
  }
}

/// The properties of a route that determine its requests and their identity.
private struct Subject: Equatable {
  let match: RouteMatch
  let spelling: RoutePolicy.Spelling
  let identity: RequestIdentity?

  init(_ policy: RoutePolicy) {
    match = policy.match
    spelling = policy.spelling
    identity = RequestIdentity(policy)
  }
}

/// Requests of a protected route that other routes identify in another way, or not at all.
public struct IdentityChange: Hashable, Sendable {
  /// The end of these requests under the other routes.
  public enum End: Hashable, Sendable {
    /// The route at this index records them under other ids, because of these members.
    case identified(by: Int, members: [String])
    /// The route at this index protects nothing.
    case unprotected(by: Int)
    /// No route takes them.
    case unmatched
  }

  /// The index of the route that protects them.
  public var route: Int
  public var end: End
}

/// Two lists of routes, compared by the identity that each kind of request has under them. Pure.
///
/// Routes overlap, so that routes of the same name say little: the comparison makes requests, at least one of each kind
/// that both lists can tell apart, and has each of them matched by both.
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

  /// Which requests of protected routes would be identified in another way.
  ///
  /// - Parameter isConsidered: The old routes that count.
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

  /// Whether any new route takes a request of an old route that counts and protects.
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

  /// Calls `body` with the new route that takes each kind of request of an old one, until it returns false.
  private func meetings(of index: Int, _ body: (Int?) -> Bool) {
    for other in new.map(Optional.some) + [nil] {
      for witness in witnesses.common(old[index], other) where witness.route(in: oldTable)?.index == index {
        guard body(witness.route(in: newTable)?.index) else { return }
      }
    }
  }
}

/// The members of a route that say which requests it takes, and what identifies them.
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

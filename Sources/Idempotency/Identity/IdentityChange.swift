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
/// one of each kind that both lists can distinguish, and matches each of them with both. Only routes whose paths agree
/// make requests together, and each kind of request is made once. For two lists with the same routes, whose patterns
/// exclude one another, the time therefore grows with the number of routes. Where every pattern agrees with every other
/// one, as `/a/{x}` does with `/{x}/b`, it grows with the square of that number.
public struct IdentityComparison {
  private let old: [RoutePolicy]
  private let new: [RoutePolicy]
  private let oldTable: WitnessTable
  private let newTable: WitnessTable
  private let newPaths: PatternIndex
  /// The kinds of all new routes, and at the end that of no route, as numbers.
  private let kinds: [Int]
  /// The hosts of the witnesses of all new routes, and at the end that of no route.
  private let hosts: [[UInt8]]
  private let witnesses: RequestWitnesses

  public init(from old: [RoutePolicy], to new: [RoutePolicy]) {
    self.old = old
    self.new = new
    oldTable = WitnessTable(old)
    newTable = WitnessTable(new)
    newPaths = PatternIndex(new.map { WitnessPaths.Shape($0).pattern })
    let others = new.map(Optional.some) + [nil]
    var numbers: [RequestWitnesses.Kind: Int] = [:]
    kinds = others.map { other in
      let kind = RequestWitnesses.Kind(other)
      let number = numbers[kind] ?? numbers.count
      numbers[kind] = number
      return number
    }
    hosts = others.map { RequestWitnesses.host($0?.match.host) }
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

  /// The indices of the new routes whose paths agree with an old route's, in their order. No other route makes a
  /// witness together with it.
  func candidates(of index: Int) -> [Int] {
    newPaths.numbers(agreeingWith: WitnessPaths.Shape(old[index]).pattern)
  }

  /// The indices of the new routes, or `nil` for no route, that make witnesses together with an old route. Of those
  /// that make the same ones it is the first.
  ///
  /// A witness at a host that the old route does not match is never the old route's, so that routes which differ in
  /// such hosts alone make the same ones.
  func partners(of index: Int) -> [Int?] {
    let pattern = old[index].match.host
    let own = RequestWitnesses.host(pattern)
    let matcher = pattern.map(HostPattern.init)
    var made: Set<Partner> = []
    return (candidates(of: index).map(Optional.some) + [nil]).filter { other in
      let number = other ?? new.count
      let host = hosts[number]
      let isMatched = host != own && matcher.map { host.withUnsafeBytes($0.matches) } ?? true
      return made.insert(Partner(kind: kinds[number], host: isMatched ? host : nil)).inserted
    }
  }

  /// Calls `body` with the new route that matches each kind of request of an old route, until `body` returns false.
  private func meetings(of index: Int, _ body: (Int?) -> Bool) {
    for other in partners(of: index) {
      for witness in witnesses.common(old[index], other.map { new[$0] })
      where oldTable.matches(index, witness) && oldTable.first(witness) == index {
        guard body(newTable.first(witness)) else { return }
      }
    }
  }
}

/// A new route, by the witnesses that it makes together with an old one.
private struct Partner: Hashable {
  let kind: Int
  /// The host of its witnesses if the old route matches it besides that of its own.
  let host: [UInt8]?
}

/// The properties of a route that determine its requests and their identity.
private struct Subject: Equatable {
  let match: RouteMatch
  /// Without `methods` in its match, a route that is off takes others than one that is shadowed.
  let methods: MethodSet
  let spelling: RoutePolicy.Spelling
  let identity: RequestIdentity?

  init(_ policy: RoutePolicy) {
    match = policy.match
    methods = policy.methods
    spelling = policy.spelling
    identity = RequestIdentity(policy)
  }
}

/// A protected route whose requests may find other records under another list of routes, or none.
public struct IdentityChange: Hashable, Sendable {
  /// The route of the other list that is the cause.
  public enum Cause: Hashable, Sendable {
    /// The route at this index may take the requests, and records them under other ids, because these members differ.
    case identified(by: Int, members: [String])
    /// The route at this index may take the requests, and protects nothing.
    case unprotected(by: Int)
    /// No route has the same match.
    case unmatched
  }

  /// The route that protects the requests.
  public var route: RouteIdentity
  public var cause: Cause

  /// The protected routes of an old list whose requests may get another identity from a new list.
  ///
  /// Routes are compared as text. A request keeps its identity where the new list has a route with the same match and
  /// the same identity, and each route before that one
  ///
  /// - has the match of a route that stood before the old one, so that it never takes the old one's requests,
  /// - has another literal in a segment of its path, so that it takes none of them either, or
  /// - gives requests the same identity.
  ///
  /// A list that only appends routes therefore has no changes. The routes that both lists begin with are compared once.
  /// The time for the others grows with the square of their number.
  public static func all(from old: [RouteIdentity], to new: [RouteIdentity]) -> [IdentityChange] {
    guard old != new else { return [] }
    let comparison = IdentityComparison(from: old, to: new)
    return old.indices.compactMap { index in
      comparison.cause(of: index).map { IdentityChange(route: old[index], cause: $0) }
    }
  }
}

private struct IdentityComparison {
  private let old: [RouteIdentity]
  private let new: [RouteIdentity]
  /// The old routes' matches.
  private let matches: [RouteIdentity.Requests]
  /// The indices of the new routes by their match.
  private let byMatch: [RouteIdentity.Requests: [Int]]
  /// For each new route, the first old one with its match; `nil` if none takes all of its requests.
  private let places: [Int?]
  private let oldLiterals: [[String?]]
  private let newLiterals: [[String?]]
  /// The number of routes with which both lists begin.
  private let commonCount: Int
  /// The new routes that take requests from earlier ones.
  private let takers: [Int]

  init(from old: [RouteIdentity], to new: [RouteIdentity]) {
    (self.old, self.new) = (old, new)
    matches = old.map(\.requests)
    let newMatches = new.map(\.requests)
    byMatch = Dictionary(grouping: new.indices) { newMatches[$0] }
    let first = Dictionary(zip(matches, old.indices)) { first, _ in first }
    places = new.indices.map { index in
      first[newMatches[index]].flatMap { place in
        new[index].takesSafeMethods && !old[place].takesSafeMethods ? nil : place
      }
    }
    commonCount = zip(old, new).prefix { $0 == $1 }.count
    takers = new.indices.filter { new[$0].namesFormat }
    oldLiterals = old.map(\.literals)
    newLiterals = new.map(\.literals)
  }

  /// The cause for which requests of the old route at an index may get another identity; `nil` if none do.
  func cause(of index: Int) -> IdentityChange.Cause? {
    guard old[index].isProtected else { return nil }
    let candidates = byMatch[matches[index]] ?? []
    guard let counterpart = candidates.first(where: { keeps(index, in: $0) }) else {
      return candidates.first.map { end(of: index, by: $0) } ?? .unmatched
    }
    let earlier = (min(commonCount, counterpart)..<counterpart)
      .filter { places[$0].map { $0 >= index } ?? true }
    let others = takers.filter { $0 > counterpart && places[$0] == nil }
    let taker = (earlier + others).first { !keeps(index, in: $0) && !excludes(index, $0) }
    return taker.map { end(of: index, by: $0) }
  }

  /// Whether the paths of an old and a new route have different literals in one place.
  private func excludes(_ index: Int, _ number: Int) -> Bool {
    zip(oldLiterals[index], newLiterals[number]).contains { old, new in
      old.flatMap { old in new.map { $0 != old } } ?? false
    }
  }

  private func keeps(_ index: Int, in number: Int) -> Bool {
    new[number].isProtected && old[index].changes(to: new[number]).isEmpty
  }

  private func end(of index: Int, by number: Int) -> IdentityChange.Cause {
    guard new[number].isProtected else { return .unprotected(by: number) }
    return .identified(by: number, members: old[index].changes(to: new[number]))
  }
}

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
  /// A later route counts, too, where it may take paths with a format suffix (`/orders.json`) that the old one had. A
  /// list that appends other routes has no changes. The routes that both lists begin with are compared once. The time
  /// for the others grows with the square of their number.
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
  private let oldEndings: [RouteIdentity.PathEnding]
  private let newEndings: [RouteIdentity.PathEnding]
  /// The number of routes with which both lists begin.
  private let commonCount: Int
  /// The new routes that may take paths with a format suffix from earlier ones.
  private let takers: [Int]
  /// The old routes that left such paths to others, and the index of the new one that does so; `nil` if none does.
  private let leavers: [(old: Int, new: Int?)]

  init(from old: [RouteIdentity], to new: [RouteIdentity]) {
    (self.old, self.new) = (old, new)
    let (matches, newMatches) = (old.map(\.requests), new.map(\.requests))
    let byMatch = Dictionary(grouping: new.indices) { newMatches[$0] }
    (self.matches, self.byMatch) = (matches, byMatch)
    let first = Dictionary(zip(matches, old.indices)) { first, _ in first }
    places = new.indices.map { index in
      first[newMatches[index]].flatMap { place in
        new[index].takesSafeMethods && !old[place].takesSafeMethods ? nil : place
      }
    }
    commonCount = zip(old, new).prefix { $0 == $1 }.count
    oldLiterals = old.map(\.literals)
    newLiterals = new.map(\.literals)
    oldEndings = old.map(\.ending)
    newEndings = new.map(\.ending)
    takers = new.indices.dropFirst(commonCount).filter { new[$0].takesFormats }
    leavers = old.indices.dropFirst(commonCount).filter { !old[$0].takesFormats }
      .map { index in
        let kept = byMatch[matches[index]]?.first {
          !new[$0].takesFormats && new[$0].takesSafeMethods == old[index].takesSafeMethods
        }
        return (index, kept)
      }
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
    let others = takers.filter { $0 > counterpart && takesFormats(of: index, by: $0) }
    let taker = (earlier + others).first {
      let isKept = keeps(index, in: $0) && !($0 < counterpart && dropsFormats(of: index, by: $0))
      return !isKept && !excludes(index, $0)
    }
    return taker.map { end(of: index, by: $0) }
  }

  /// Whether a new route behind an old one's counterpart may take paths with a format suffix that the old one had. It
  /// does not if it stood in the old list, and no route above it left such paths to the old one.
  private func takesFormats(of index: Int, by number: Int) -> Bool {
    guard let depth = oldEndings[index].meantDepth, newEndings[number].fits(depth) else { return false }
    guard let place = places[number], old[place].takesFormats else { return true }
    return leavers.contains { leaver in
      leaver.old < place && leaver.new.map { $0 > number } ?? true && oldEndings[leaver.old].fits(depth)
        && !Self.excludes(oldLiterals[index], oldLiterals[leaver.old])
    }
  }

  /// Whether a new route takes paths from an old one, and leaves those with a format suffix unprotected.
  private func dropsFormats(of index: Int, by number: Int) -> Bool {
    newEndings[number].isExact && oldEndings[index].meantDepth != nil
  }

  private func excludes(_ index: Int, _ number: Int) -> Bool {
    Self.excludes(oldLiterals[index], newLiterals[number])
  }

  /// Whether two paths have different literals in one place.
  private static func excludes(_ one: [String?], _ other: [String?]) -> Bool {
    zip(one, other).contains { one, other in one.flatMap { one in other.map { $0 != one } } ?? false }
  }

  private func keeps(_ index: Int, in number: Int) -> Bool {
    new[number].isProtected && old[index].changes(to: new[number]).isEmpty
  }

  private func end(of index: Int, by number: Int) -> IdentityChange.Cause {
    guard new[number].isProtected else { return .unprotected(by: number) }
    let members = old[index].changes(to: new[number])
    return .identified(by: number, members: members.isEmpty ? ["spelling"] : members)
  }
}

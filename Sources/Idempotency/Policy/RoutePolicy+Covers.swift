import Wire

extension RoutePolicy {
  /// Whether this route matches every request that another route matches, so that the other is unreachable behind it.
  public func covers(_ other: RoutePolicy) -> Bool {
    methods.isSuperset(of: other.methods) && coversHost(of: other) && coversPath(of: other)
      && match.headers.allSatisfy(other.match.headers.contains)
      && (match.graphql == nil || match.graphql == other.match.graphql)
  }

  private func coversHost(of other: RoutePolicy) -> Bool {
    guard let host = match.host else { return true }
    guard let otherHost = other.match.host else { return false }
    return HostPattern(host).covers(HostPattern(otherHost))
  }

  private func coversPath(of other: RoutePolicy) -> Bool {
    guard let path = match.path else { return true }
    guard let otherPath = other.match.path else { return false }
    return PathMatcher(path, spelling: spelling).covers(PathMatcher(otherPath, spelling: other.spelling))
  }
}

extension PathMatcher {
  /// Whether this matcher matches every path that another one matches.
  func covers(_ other: PathMatcher) -> Bool {
    if segments.isEmpty, matchesRest { return true }
    // Each lenient pattern matches spellings that no exact one matches, except for `/**`, which is handled above.
    if spelling == .exact, other.spelling != .exact { return false }
    let others =
      spelling == .exact ? other.segments : other.segments.compactMap(Self.lenient)
    guard matchesRest ? segments.count <= others.count : segments.count == others.count && !other.matchesRest
    else { return false }
    return zip(segments, others).allSatisfy { covers($0, $1, isFolded: other.spelling == .caseless) }
  }

  /// Whether every name that matches another segment matches this one.
  ///
  /// - Parameter isFolded: Whether the other segment is matched without regard to letter case.
  private func covers(_ own: PathPattern.Segment, _ other: PathPattern.Segment, isFolded: Bool) -> Bool {
    guard case .literal(let name) = own else {
      // A placeholder takes no empty segment, such as the one behind a last slash.
      return other != .literal([])
    }
    guard case .literal(let otherName) = other else { return false }
    if spelling == .caseless { return name.map(ASCII.lowercased) == otherName.map(ASCII.lowercased) }
    return name == otherName && !(isFolded && name.contains(where: ASCII.isLetter))
  }
}

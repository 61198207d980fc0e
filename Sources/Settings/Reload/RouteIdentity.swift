import Idempotency

/// What of a route goes into the ids of its records, besides what each request says.
struct RouteIdentity: Hashable {
  private let callers: [CallerPart]
  private let upstream: String
  /// The route's name where its records go by that; `nil`: by the request's path.
  private let name: String?

  /// `nil` for a route that makes no records.
  init?(_ policy: RoutePolicy) {
    guard policy.idempotency != .off, let caller = policy.caller else { return nil }
    callers = caller.parts
    upstream = policy.upstream.name
    name = policy.endpoint == .route ? policy.name : nil
  }

  /// The members of the route by which the two differ.
  func changes(to other: RouteIdentity) -> [String] {
    var members: [String] = []
    if callers != other.callers { members.append("caller") }
    if upstream != other.upstream { members.append("upstream") }
    if (name == nil) != (other.name == nil) {
      members.append("endpoint")
    } else if name != other.name {
      members.append("name")
    }
    return members
  }
}

/// The settings of a protected route that enter its records' ids, besides what each request says.
public struct RequestIdentity: Hashable, Sendable {
  private let callers: [CallerPart]
  private let keys: [KeySource]
  private let upstream: String
  /// The route's name where its records go by that; `nil`: by the request's path.
  private let name: String?

  /// `nil` for a route that makes no records.
  public init?(_ policy: RoutePolicy) {
    guard policy.idempotency != .off, let caller = policy.caller else { return nil }
    callers = caller.parts
    keys = policy.key.from
    upstream = policy.upstream.name
    name = policy.endpoint == .route ? policy.name : nil
  }

  /// The members of a route by which requests get other ids under another identity; none where all stay the same.
  ///
  /// A key source added behind the others changes no id: a request in which an earlier one yields a key keeps that key,
  /// and one in which none did has no record.
  public func changes(to other: RequestIdentity) -> [String] {
    var members: [String] = []
    if callers != other.callers { members.append("caller") }
    if !other.keys.starts(with: keys) { members.append("key") }
    if upstream != other.upstream { members.append("upstream") }
    if (name == nil) != (other.name == nil) {
      members.append("endpoint")
    } else if name != other.name {
      members.append("name")
    }
    return members
  }
}

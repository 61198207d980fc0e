/// The settings of a protected route that enter its records' ids, besides the values in each request.
public struct RequestIdentity: Hashable, Sendable {
  private let callers: [CallerPart]
  /// Whether requests that lack a part have records, too.
  private let takesAnonymous: Bool
  private let keys: [KeySource]
  private let upstream: String
  /// The route's name if it enters the ids; `nil` if the request's path does instead.
  private let name: String?
  /// Whether all hosts have the same ids.
  private let takesAnyHost: Bool
  /// The places of a batch's items and of their keys; `nil` for a route of single requests.
  private let batch: [String]?
  /// The recipe of the fingerprint if that may be the key; `nil` if it enters no id.
  private let recipe: Recipe?

  /// Reads the settings of a route; `nil` if no request relies on its records.
  public init?(_ policy: RoutePolicy) {
    guard policy.isEnforced, let caller = policy.caller else { return nil }
    callers = caller.parts
    takesAnonymous = caller.anonymous == .allow
    keys = policy.key.from
    upstream = policy.upstream.name
    name = policy.endpoint == .route ? policy.name : nil
    takesAnyHost = policy.endpointHost == .any
    batch = policy.batch.map { [$0.items, $0.key] }
    recipe = policy.key.from.contains(.payload) ? policy.recipe.ofKeys : nil
  }

  /// The route's members that differ between two identities and give requests other ids; empty if all ids stay the
  /// same.
  ///
  /// A key source that is added after the others changes no id: a request with a key in an earlier source keeps that
  /// key, and a request without one has no record. The same holds for alternatives of a caller's part, unless a request
  /// without the earlier ones has a record as an anonymous caller's. Nor does it change an id whether a part is optional.
  public func changes(to other: RequestIdentity) -> [String] {
    var members: [String] = []
    if !keepsCallers(in: other) { members.append("caller") }
    if !other.keys.starts(with: keys) {
      members.append("key")
    } else if let recipe, recipe != other.recipe {
      members.append("fingerprint")
    }
    if batch != other.batch { members.append("batch") }
    if upstream != other.upstream { members.append("upstream") }
    if (name == nil) != (other.name == nil) || takesAnyHost != other.takesAnyHost {
      members.append("endpoint")
    } else if name != other.name {
      members.append("name")
    }
    return members
  }

  /// Whether all requests with records have the same callers by the parts of another identity.
  private func keepsCallers(in other: RequestIdentity) -> Bool {
    callers.count == other.callers.count
      && zip(callers, other.callers).allSatisfy { old, new in
        // A part that becomes optional, or is not any more, is encoded in the same way.
        old.alternatives == new.alternatives
          || !takesAnonymous && !old.isOptional && new.alternatives.starts(with: old.alternatives)
      }
  }
}

/// The effect of a changed configuration on a running Semel, but for identity, which is compared with the namespace.
public enum ReloadPlan: Hashable, Sendable {
  case apply
  /// The old configuration stays in use. The array contains all reasons, at least one.
  case refuse([Reason])

  /// One member that prevents the reload.
  public struct Reason: Hashable, Sendable, CustomStringConvertible {
    /// The member's path in the new file, such as `listen` or `routes[0].caller`.
    public var member: String
    /// The message for the operator, with a remedy.
    public var message: String

    public init(_ member: String, _ message: String) {
      self.member = member
      self.message = message
    }

    public var description: String { "\(member): \(message)" }
  }

  public init(from old: Settings, to new: Settings) {
    let reasons = Self.fixed(old, new)
    self = reasons.isEmpty ? .apply : .refuse(reasons)
  }
}

extension ReloadPlan {
  /// The maximum number of routes' reasons that are listed one by one, in a log or a probe's response.
  static let maxListed = 20

  /// The reasons for a person: of those about routes the first ones, and the number of the others.
  static func listed(_ reasons: [Reason]) -> [Reason] {
    let routes = reasons.count { $0.member.hasPrefix("routes") }
    var listed: [Reason] = []
    var room = maxListed
    for reason in reasons {
      guard reason.member.hasPrefix("routes") else {
        listed.append(reason)
        continue
      }
      if room > 0 { listed.append(reason) }
      if room == 0 { listed.append(Reason("routes", "… and \(routes - maxListed) more such reasons")) }
      room -= 1
    }
    return listed
  }

  /// The members that cannot change before the process ends, since their resources are opened or divided at its start.
  private static func fixed(_ old: Settings, _ new: Settings) -> [Reason] {
    var names = Settings.schema.changes(from: old, to: new)
    var adopted = old
    Settings.schema.adopt(new, into: &adopted)
    adopted.warnings = new.warnings
    // A change that no member of the schema states must not be ignored silently.
    if names.isEmpty, adopted != new { names.append("a setting that a reload cannot change") }
    return names.map { Reason($0, "cannot change while Semel runs; restart it, or write the old value") }
  }
}

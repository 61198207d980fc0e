/// The end that a request of a shadowed route would have had if the route were in force.
public enum ShadowVerdict: MetricLabel {
  /// It would have run as the first delivery, or as the next attempt of one that may be repeated.
  case executed
  case replayed
  /// It has no key, and the route requires none.
  case passed
  /// The store was unavailable, and the route runs requests without it.
  case unprotected
  case refused(RefusalReason)

  private static let own: [ShadowVerdict] = [.executed, .replayed, .passed, .unprotected]

  public static let allCases: [ShadowVerdict] = own + RefusalReason.allCases.map(ShadowVerdict.refused)
  public static let key = "would"
  public static let values = ["executed", "replayed", "passed", "unprotected"] + RefusalReason.values

  public init?(rawValue: Int) {
    guard Self.allCases.indices.contains(rawValue) else { return nil }
    self = Self.allCases[rawValue]
  }

  public var rawValue: Int {
    switch self {
    case .executed: 0
    case .replayed: 1
    case .passed: 2
    case .unprotected: 3
    case .refused(let reason): Self.own.count + reason.rawValue
    }
  }
}

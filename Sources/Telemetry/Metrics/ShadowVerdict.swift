/// The end that a request of a shadowed route would have had if the route were in force.
public enum ShadowVerdict: MetricLabel {
  /// It would have run as the first delivery, or as the next attempt of one that may be repeated.
  case executed
  case replayed
  /// It came while another delivery of its intent ran, and would have waited for that one's outcome.
  case waited
  /// It has no key, and the route requires none.
  case passed
  /// The store was unavailable, and the route runs requests without it.
  case unprotected
  case refused(RefusalReason)

  private static let own: [ShadowVerdict] = [.executed, .replayed, .waited, .passed, .unprotected]

  public static let allCases: [ShadowVerdict] = own + RefusalReason.allCases.map(ShadowVerdict.refused)
  public static let key = "would"
  public static let values =
    ["executed", "replayed", "waited", "passed", "unprotected"] + RefusalReason.values

  public init?(rawValue: Int) {
    guard Self.allCases.indices.contains(rawValue) else { return nil }
    self = Self.allCases[rawValue]
  }

  public var rawValue: Int {
    switch self {
    case .executed: 0
    case .replayed: 1
    case .waited: 2
    case .passed: 3
    case .unprotected: 4
    case .refused(let reason): Self.own.count + reason.rawValue
    }
  }
}

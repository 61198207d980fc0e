import Wire

/// The fields of responses that are left out of records, and so of replays, beyond those of one moment.
public struct ReplayPolicy: Hashable, Sendable {
  /// Further fields that belong to one exchange, such as `X-Request-Id`.
  public var drop = FieldNameList()
  /// Fields of `FieldNameList.rateLimits` that are recorded nevertheless.
  public var keep = FieldNameList()

  public init() {}

  /// The fields that are left out.
  ///
  /// - Parameter stated: Further fields that replays state anew.
  func omission(stated: [String]) -> FieldOmission {
    FieldOmission(FieldNameList(FieldNameList.rateLimits.names + drop.names + stated), except: keep)
  }
}

extension Route {
  /// The `Location` that a record without its response keeps; `nil` if there is none, or the route leaves it out.
  public func recordedLocation(_ head: MessageHead?) -> String? {
    unrecorded.known.contains(.location) ? nil : head?.string(.location)
  }
}

extension RoutePolicy {
  /// An outcome as the route records it.
  func recorded(_ outcome: Outcome) -> Outcome { record == .status ? outcome.withoutResponse : outcome }
}

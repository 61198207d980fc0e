import Idempotency

extension RoutePolicy {
  /// The reason why a request may run again while its first run is still under way; `nil` if there is none.
  ///
  /// After a time-out, `settle` counts from the end of `response_timeout`. If the owner's node ends before, it counts
  /// from the lapse of the lease. A settle as long as `response_timeout` covers both.
  var takeOverWarning: String? {
    guard isEnforced, onUnknown != .hold, timeToResponse > lease, timeToResponse > upstream.settle else {
      return nil
    }
    let (response, settle) = (TimeSpan.text(timeToResponse), TimeSpan.text(upstream.settle))
    return "with on_unknown: \(onUnknown.rawValue), a lease of \(TimeSpan.text(lease)) is shorter than the "
      + "response_timeout of \(response): where a node ends in the middle of a request, the lease lapses and settle "
      + "(\(settle)) counts from then on, so that the request may run again \(TimeSpan.text(lease + upstream.settle)) "
      + "after it began, while its first run is still under way; write lease: \(response) or more, or settle: "
      + "\(response) or more at upstreams.\(upstream.name)"
  }
}

/// The meeting point of all calls that use one set of credentials. Decides; refreshes nothing, and has no clock.
///
/// One refresh serves all calls that need it. The others are held meanwhile. A call that was refused with credentials
/// that have been replaced since is sent again without another refresh.
package struct CredentialJunction: Sendable {
  private enum State: Hashable {
    /// The credentials of this generation are in use. Followed by refreshing.
    case ready
    /// A refresh is under way. Followed by ready.
    case refreshing
  }

  /// The refreshes that are allowed within a window, so that a server that refuses every token is not flooded.
  package static let maxRefreshes = 5
  package static let window = Duration.seconds(30)

  private var state = State.ready
  /// The number of the credentials in use. Each refresh that succeeds makes the next.
  package private(set) var generation = 0
  /// The begins of the refreshes within the window.
  private var refreshes: [Duration] = []

  package init() {}

  package enum AdmitAction: Hashable { case proceed, join }

  /// A call is about to be sent.
  package func admit() -> AdmitAction { state == .ready ? .proceed : .join }

  package enum RefusedAction: Hashable {
    /// Send the call again with the credentials in use.
    case resend
    /// Wait for the refresh that is under way, then send it again.
    case join
    /// Refresh, then send it again.
    case refresh
    /// Too many refreshes: give up.
    case giveUp
  }

  /// The server has refused a call that was sent with the credentials of a generation. `now` is a time that never runs
  /// backwards.
  package mutating func refused(generation: Int, now: Duration) -> RefusedAction {
    if state == .refreshing { return .join }
    if generation < self.generation { return .resend }
    refreshes.removeAll { now - $0 >= Self.window }
    guard refreshes.count < Self.maxRefreshes else { return .giveUp }
    refreshes.append(now)
    state = .refreshing
    return .refresh
  }

  /// The refresh has ended. One that failed leaves the generation as it is, so that a later call tries again.
  package mutating func refreshEnded(isSuccess: Bool) {
    precondition(state == .refreshing, "A refresh ends that did not begin.")
    state = .ready
    if isSuccess { generation += 1 }
  }
}

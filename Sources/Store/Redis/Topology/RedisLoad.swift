import Idempotency

/// The conditions under which commands take the forms that cost Redis less (`PlainClaim`).
///
/// The other forms cost it a few microseconds more, which is negligible as long as a connection has few commands under
/// way. Without load each claim has a script's deadline. Under load Redis has replied a moment ago, so that it is known
/// to run, and its time to be what it was.
public struct RedisLoad: Sendable {
  /// The number of commands without a reply from which a connection is under load; `nil` if it never is.
  var minPending: Int?
  /// The time since the last request for Redis' time, from which a claim takes the script.
  var maxClaimAge: Milliseconds
  /// The time from which a completion reads Redis' time. It is shorter: under load some completion reads it before a
  /// claim would need a script for it.
  var maxCompletionAge: Milliseconds

  public static let `default` = RedisLoad(minPending: 4, maxClaimAge: 25, maxCompletionAge: 10)
  /// Every connection counts as loaded.
  public static let always = RedisLoad(minPending: 0, maxClaimAge: 1000, maxCompletionAge: 500)
  /// No connection counts as loaded.
  public static let never = RedisLoad(minPending: nil, maxClaimAge: 0, maxCompletionAge: 0)
}

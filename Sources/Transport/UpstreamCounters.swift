/// What one event loop's transport has done so far.
public struct UpstreamCounters: Sendable, Equatable {
  /// Sockets opened, also for connects that failed.
  public var connects = 0
  /// Requests of which the sending was begun.
  public var sends = 0
  /// Connects tried again.
  public var retries = 0
}

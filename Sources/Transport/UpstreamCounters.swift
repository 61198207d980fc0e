/// The totals of one event loop's transport.
public struct UpstreamCounters: Sendable, Equatable {
  /// The number of connections begun, including those that failed.
  public var connects = 0
  /// The number of requests whose sending was begun.
  public var sends = 0
  /// The number of repeated attempts to connect.
  public var retries = 0
}

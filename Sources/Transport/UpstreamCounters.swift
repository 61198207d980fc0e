/// What one event loop's transport has done so far.
package struct UpstreamCounters: Sendable, Equatable {
  /// Sockets opened, also for connects that failed.
  package var connects = 0
  /// Requests of which the sending was begun.
  package var sends = 0
  /// Connects tried again.
  package var retries = 0
}

import NIOCore

/// The requests of one event loop for which no connection to their backend could be made, by upstream.
struct ConnectFailures {
  private struct Upstream {
    /// Failures since the last log entry.
    var unlogged = 0
    var loggedAt: NIODeadline?
  }

  private static let pause = TimeAmount.minutes(1)

  private var upstreams: [String: Upstream] = [:]

  /// Counts a failure.
  ///
  /// - Returns: The failures since the last log entry, this one included, where another entry is due.
  mutating func count(of name: String, at now: NIODeadline) -> Int? {
    var upstream = upstreams[name, default: Upstream()]
    defer { upstreams[name] = upstream }
    upstream.unlogged += 1
    if let last = upstream.loggedAt, now - last < Self.pause { return nil }
    defer { upstream.unlogged = 0 }
    upstream.loggedAt = now
    return upstream.unlogged
  }
}

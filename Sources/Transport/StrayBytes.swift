import NIOCore
import Synchronization

/// The connections that were ended for bytes that a backend sent unasked, by upstream. Shared by all event loops.
public final class StrayBytes: Sendable {
  private struct Upstream {
    var connections = 0
    /// Connections since the last log entry.
    var unlogged = 0
    var loggedAt: NIODeadline?
  }

  private static let pause = TimeAmount.minutes(1)

  private let upstreams: Mutex<[String: Upstream]>

  /// - Parameter upstreams: those that are counted from 0 on; others follow with their first connection.
  public init(upstreams: [String] = []) {
    self.upstreams = Mutex(Dictionary(upstreams.map { ($0, Upstream()) }) { first, _ in first })
  }

  /// The connections of each upstream, sorted by its name.
  public var connections: [(upstream: String, count: Int)] {
    upstreams.withLock { $0.map { ($0.key, $0.value.connections) } }.sorted { $0.0 < $1.0 }
  }

  /// Counts a connection.
  ///
  /// - Returns: The connections since the last log entry, this one included, where another entry is due.
  func count(of name: String, at now: NIODeadline) -> Int? {
    upstreams.withLock { upstreams in
      var upstream = upstreams[name, default: Upstream()]
      defer { upstreams[name] = upstream }
      upstream.connections += 1
      upstream.unlogged += 1
      if let last = upstream.loggedAt, now - last < Self.pause { return nil }
      defer { upstream.unlogged = 0 }
      upstream.loggedAt = now
      return upstream.unlogged
    }
  }
}

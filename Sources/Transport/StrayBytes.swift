import NIOCore
import Platform
import Synchronization

/// The connections that were ended for bytes that a backend sent unasked, by upstream. Shared by all event loops.
public final class StrayBytes: Sendable {
  private struct Counts {
    var connections: [String: Int]
    var pace = LogPace<String>()
  }

  private let counts: Mutex<Counts>

  /// - Parameter upstreams: The names of those that are counted from 0 on; others follow with their first connection.
  public init(upstreams: [String] = []) {
    counts = Mutex(Counts(connections: Dictionary(upstreams.map { ($0, 0) }) { first, _ in first }))
  }

  /// The connections of each upstream, sorted by its name.
  public var connections: [(upstream: String, count: Int)] {
    counts.withLock { $0.connections.map { ($0.key, $0.value) } }.sorted { $0.0 < $1.0 }
  }

  /// Counts a connection.
  ///
  /// - Returns: The connections since the last log entry, this one included, where another entry is due.
  func count(of name: String, at now: NIODeadline) -> Int? {
    counts.withLock { counts in
      counts.connections[name, default: 0] += 1
      return counts.pace.count(name, at: now)
    }
  }
}

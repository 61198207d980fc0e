import NIOCore
import Platform
import Synchronization

/// The faults of backends that Semel had to end a connection for, by upstream. Shared by all event loops.
public final class BackendFaults: Sendable {
  public enum Kind: Sendable {
    /// The backend sent bytes that no request asked for.
    case strayBytes
    /// The backend sent a response of which only the status, or the head, can be read.
    case malformedResponse
  }

  private struct Key: Hashable {
    let kind: Kind
    let upstream: String
  }

  private struct Counts {
    var faults: [Key: Int] = [:]
    var pace = LogPace<Key>()
  }

  private let counts: Mutex<Counts>

  /// - Parameter upstreams: The names of those that are counted from 0 on; others follow with their first fault.
  public init(upstreams: [String] = []) {
    var counts = Counts()
    for name in upstreams {
      for kind in [Kind.strayBytes, .malformedResponse] { counts.faults[Key(kind: kind, upstream: name)] = 0 }
    }
    self.counts = Mutex(counts)
  }

  /// The faults of one kind of each upstream, sorted by its name.
  public func counts(of kind: Kind) -> [(upstream: String, count: Int)] {
    counts.withLock { counts in
      counts.faults.filter { $0.key.kind == kind }.map { ($0.key.upstream, $0.value) }
    }.sorted { $0.0 < $1.0 }
  }

  /// Counts a fault.
  ///
  /// - Returns: The faults of its kind and upstream since the last log entry about them, this one included, where
  ///   another entry is due.
  func count(_ kind: Kind, of upstream: String, at now: NIODeadline) -> Int? {
    let key = Key(kind: kind, upstream: upstream)
    return counts.withLock { counts in
      counts.faults[key, default: 0] += 1
      return counts.pace.count(key, at: now)
    }
  }
}

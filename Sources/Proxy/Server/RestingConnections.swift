import NIOCore

/// The connections of one loop that may be closed for new ones, in their order: of the client that has the most
/// connections the one that has rested longest, and so on. Pure: time and connections come in.
///
/// A search looks at all connections, so it finds several at once, and another follows only after a while.
struct RestingConnections {
  struct Candidate {
    let id: Int
    let client: MemoryHolder?
    /// `nil` if the connection does not rest. It counts among its client's all the same.
    let restingSince: NIODeadline?
  }

  /// The number of connections that one search finds.
  static let maxFound = 256
  /// The time between two searches: one takes about a millisecond where there are thousands of connections.
  static let interval = TimeAmount.milliseconds(100)

  /// The next one is the last.
  private var found: [Candidate] = []
  private var searchedAt: NIODeadline?

  /// Whether the last search has nothing left, and another may follow.
  func isSearchDue(at now: NIODeadline) -> Bool {
    found.isEmpty && searchedAt.map { now - $0 >= Self.interval } ?? true
  }

  mutating func search(_ connections: [Candidate], at now: NIODeadline) {
    searchedAt = now
    var left: [MemoryHolder?: Int] = [:]
    for connection in connections { left[connection.client, default: 0] += 1 }
    let resting = connections.compactMap { candidate in
      candidate.restingSince.map { (candidate, since: $0) }
    }
    // The number that its client has when those that have rested longer are closed.
    let ranked = resting.sorted { $0.since < $1.since }.map { candidate, since in
      let count = left[candidate.client] ?? 0
      left[candidate.client] = count - 1
      return (candidate, since, count)
    }
    let order = ranked.sorted { $0.2 != $1.2 ? $0.2 > $1.2 : $0.1 < $1.1 }
    found = order.prefix(Self.maxFound).reversed().map { $0.0 }
  }

  /// The next connection that rested when it was found.
  mutating func next() -> Candidate? { found.popLast() }
}

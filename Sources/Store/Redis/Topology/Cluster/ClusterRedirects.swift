import Idempotency
import Wire

/// The redirections of one call through a cluster: they decide which node gets its next copy, and when. Pure.
struct ClusterRedirects: Equatable {
  /// The place and time of the next copy.
  enum Next: Equatable {
    /// The master by the slot map, at once.
    case byMap
    /// This node, after `ASKING` on the same connection.
    case asking(ServerAddress)
    /// The master by the slot map, after a pause.
    case later(Milliseconds)
    /// No copy any more.
    case fail(String)
  }

  /// The maximum number of nodes that redirect one call. A slot map that is right needs one redirection, and a slot
  /// that is on its way two.
  private static let maxFollowed = 8
  /// The first and the largest pause. Semel pauses for conditions that last: a slot's migration, or an election.
  private static let firstPause: Milliseconds = 5
  private static let maxPause: Milliseconds = 100

  private var followed = 0
  private var pause = firstPause
  /// The last refusal, as a reason for the call's error; `nil` before the first one.
  private(set) var reason: String?
  private var next = Next.byMap

  /// Takes the refusal of a copy.
  mutating func refused(_ refusal: ClusterRefusal) {
    switch refusal {
    case .moved(_, let target):
      reason = "the cluster's nodes point to each other for one slot, last to \(target)"
      follow(.byMap)
    case .ask(let target):
      reason = "the cluster's nodes point to each other for one slot, last to \(target)"
      follow(.asking(target))
    case .tryAgain: wait("a part of the record's keys is on its way to another node of the cluster")
    case .loading: wait("a node of the cluster is reading its data from disk")
    case .down(let text): wait("no node of the cluster serves the record's slot (\(text))")
    }
  }

  /// Returns the place of the next copy, once. The copy after it goes by the map.
  mutating func takeNext() -> Next {
    defer { next = .byMap }
    return next
  }

  private mutating func follow(_ target: Next) {
    followed += 1
    next = followed < Self.maxFollowed ? target : .fail(reason ?? "")
  }

  private mutating func wait(_ why: String) {
    reason = why
    next = .later(pause)
    pause = min(Milliseconds(pause.count * 2), Self.maxPause)
  }
}

import Idempotency
import Wire

/// The redirections of one call through a cluster. Pure.
struct ClusterRedirects: Equatable {
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

  /// The maximum number of nodes that redirect one call. A right map needs one, a slot that is on its way two.
  private static let maxFollowed = 8
  /// The first and the largest pause, for a slot's migration, or an election.
  private static let firstPause: Milliseconds = 5
  private static let maxPause: Milliseconds = 100

  private var followed = 0
  private var pause = firstPause
  /// The last refusal, as a reason for the call's error.
  private(set) var reason: String?
  private var next = Next.byMap

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

enum ClusterRefusal: Equatable {
  /// The slot belongs to another master.
  case moved(slot: Int, to: ServerAddress)
  /// The slot is on its way to another master, which already has the key.
  case ask(to: ServerAddress)
  /// Part of the keys have moved.
  case tryAgain
  /// The node reads its data from disk.
  case loading
  /// The node cannot serve the slot, or no node serves it.
  case down(String)

  /// Reads an error of a node; `nil` if it is none of these. A target without a host is on the same host.
  init?(_ text: String, from node: ServerAddress) {
    let words = text.split(separator: " ")
    switch words.first.map(String.init) ?? "" {
    case "MOVED":
      guard words.count == 3, let slot = Int(words[1]), 0..<SlotMap.slotCount ~= slot,
        let target = Self.address(words[2], node)
      else { return nil }
      self = .moved(slot: slot, to: target)
    case "ASK":
      guard words.count == 3, let target = Self.address(words[2], node) else { return nil }
      self = .ask(to: target)
    case "TRYAGAIN": self = .tryAgain
    case "LOADING", "MASTERDOWN": self = .loading
    case "CLUSTERDOWN": self = .down(text)
    default: return nil
    }
  }

  var kind: Kind {
    switch self {
    case .moved: .moved
    case .ask: .ask
    case .tryAgain: .tryAgain
    case .loading: .loading
    case .down: .down
    }
  }

  enum Kind: String, CaseIterable {
    case moved, ask, loading, down
    case tryAgain = "try_again"
  }

  /// Reads `HOST:PORT`, where an IPv6 host has no brackets.
  private static func address(_ text: Substring, _ node: ServerAddress) -> ServerAddress? {
    guard let colon = text.lastIndex(of: ":"), let port = Int(text[colon...].dropFirst()), 1...65535 ~= port
    else { return nil }
    let named = String(text[..<colon])
    guard named.isEmpty || named == "?" else { return .tcp(host: named, port: port) }
    return node.host.map { .tcp(host: $0, port: port) }
  }
}

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

/// A place in a walk over the keys of all masters. Pure.
///
/// A step reads some keys of one master, whatever their slots. As long as the slot map stays the same, each master is
/// walked once, in the order of their first slots. From a change on, each run of neighbouring slots of one master
/// counts by itself, and a master is walked once for each of its runs that are left: no slot is missed, and records may
/// be found several times. A record is missed that moves to a master walked before, if the map changes too late.
///
/// All slots below the place's are done. The slot rises with each master or run, so that the walk ends.
///
/// The text is `SLOT/MASTER/CURSOR/MAP` with the digest of the map, and `SLOT-LAST/MASTER/CURSOR` for a run. A cursor
/// is valid on the node that returned it only.
struct ClusterWalk: Equatable {
  private enum Scope: Equatable {
    /// All of the master's slots, by the map of this digest. May be followed by a run.
    case master(digest: String)
    /// The slots up to this one. Followed by runs only.
    case run(last: Int)
  }

  private let slot: Int
  private let master: String
  let cursor: String
  private let scope: Scope

  private init(_ slot: Int, _ master: String, cursor: String = "0", _ scope: Scope) {
    self.slot = slot
    self.master = master
    self.cursor = cursor
    self.scope = scope
  }

  init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard 3...4 ~= parts.count, let slots = Self.slots(parts[0]), !parts[1].isEmpty,
      parts[2].utf8.allSatisfy({ 0x30...0x39 ~= $0 }), UInt64(parts[2]) != nil
    else { return nil }
    slot = slots.lowerBound
    master = String(parts[1])
    cursor = String(parts[2])
    guard parts.count == 4 else {
      scope = .run(last: slots.upperBound)
      return
    }
    guard slots.count == 1, parts[3].utf8.count == SlotMap.digestLength, UInt64(parts[3], radix: 16) != nil
    else { return nil }
    scope = .master(digest: String(parts[3]))
  }

  /// Reads `SLOT-LAST`, or `SLOT` for one slot, as an earlier version wrote it.
  private static func slots(_ text: Substring) -> ClosedRange<Int>? {
    let ends = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = Int(ends[0]), let last = Int(ends[ends.count - 1]), 0 <= first, first <= last,
      last < SlotMap.slotCount
    else { return nil }
    return first...last
  }

  var text: String {
    switch scope {
    case .master(let digest): "\(slot)/\(master)/\(cursor)/\(digest)"
    case .run(let last): "\(slot)-\(last)/\(master)/\(cursor)"
    }
  }

  /// The place of the next step, and the master that it reads; `nil` if the walk has ended.
  static func step(
    _ walk: ClusterWalk?, in map: SlotMap
  ) -> (place: ClusterWalk, master: ServerAddress)? {
    guard let walk else {
      return map.firstSlots.first.map { first in
        (
          place: ClusterWalk(first.slot, "\(first.master)", .master(digest: map.digest)),
          master: first.master
        )
      }
    }
    guard let master = map[walk.slot], "\(master)" == walk.master, walk.isValid(in: map) else {
      return run(from: walk.slot, in: map)
    }
    return (walk, master)
  }

  private func isValid(in map: SlotMap) -> Bool {
    switch scope {
    case .master(let digest): digest == map.digest
    case .run: true
    }
  }

  /// The place after a step that has returned a cursor, by the map after it; `nil` if the walk has ended.
  func after(cursor next: String, in map: SlotMap) -> ClusterWalk? {
    guard next == "0" else { return ClusterWalk(slot, master, cursor: next, scope) }
    switch scope {
    case .master where isValid(in: map):
      return map.firstSlots.first { $0.slot > slot }.map { ClusterWalk($0.slot, "\($0.master)", scope) }
    case .master: return Self.run(from: slot, in: map)?.place
    case .run(let last): return Self.run(from: firstLeft(upTo: last, in: map), in: map)?.place
    }
  }

  /// The first slot that the walk over a run has not done: one that its master has no longer, or the one after the run.
  private func firstLeft(upTo last: Int, in map: SlotMap) -> Int {
    guard let present = map.run(from: slot), present.slots.lowerBound == slot, "\(present.master)" == master
    else { return slot }
    return min(present.slots.upperBound, last) + 1
  }

  /// The beginning of the first run at a slot or after it.
  private static func run(
    from slot: Int, in map: SlotMap
  ) -> (place: ClusterWalk, master: ServerAddress)? {
    map.run(from: slot).map { run in
      (
        place: ClusterWalk(run.slots.lowerBound, "\(run.master)", .run(last: run.slots.upperBound)),
        master: run.master
      )
    }
  }
}

import NIOCore
import Synchronization
import Wire

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

/// Elements that enter and leave, each under a number of its own, which is never given twice.
///
/// Their order depends on what has entered and left alone. That of a dictionary by addresses would differ between two
/// equal runs of a simulation.
struct Roster<Element> {
  private var elements: [Int: Element] = [:]
  private var lastNumber = 0

  var isEmpty: Bool { elements.isEmpty }
  var count: Int { elements.count }
  var values: some Collection<Element> { elements.values }
  /// The elements with their numbers.
  var entries: some Collection<(key: Int, value: Element)> { elements }

  subscript(number: Int) -> Element? {
    get { elements[number] }
    _modify { yield &elements[number] }
  }

  /// Adds an element and returns its number.
  mutating func enter(_ element: Element) -> Int {
    lastNumber += 1
    elements[lastNumber] = element
    return lastNumber
  }

  /// Removes an element, if it has not left before.
  mutating func leave(_ number: Int) { elements[number] = nil }
}

/// The room for connections, of all loops, whose TLS handshake or PROXY header is unfinished. Each of the two has a
/// room of its own: before the PROXY header the client is unknown, so that the connections of one could take the places
/// of those whose handshakes are under way.
///
/// Such connections cost a client nothing. Therefore those of a room have a share of `max_connections`, and one client
/// half of the share. Beyond that, the oldest connection of the client that has the most is closed: an honest client
/// finishes within a round trip or two. An address that many clients share, such as a load balancer's, does not count
/// as one client.
final class HandshakeRoom: Sendable {
  fileprivate struct Entry {
    let client: String?
    let channel: any Channel
  }

  fileprivate struct State: ~Copyable {
    var entries: [UInt64: Entry] = [:]
    /// The number of entries of each client, and of all without one.
    var counts: [String?: Int] = [:]
    var next: UInt64 = 0
  }

  private let state = Mutex(State())

  /// The number of connections that may be unfinished at once.
  static func share(of maxConnections: Int) -> Int { max(maxConnections / 4, 2) }

  /// Acquires a place for a connection; closes another if there is none.
  ///
  /// - Parameter client: The address of the one client that the connection is known to be from; `nil` if there is none.
  /// - Returns: The ticket with which `release` must follow.
  func acquire(_ channel: any Channel, from client: String?, maxConnections: Int) -> UInt64 {
    let share = Self.share(of: maxConnections)
    let (ticket, evicted) = state.withLock { state -> (UInt64, (any Channel)?) in
      var evicted: (any Channel)?
      if let client, state.counts[client, default: 0] >= max(share / 2, 1) {
        evicted = state.removeOldest { $0.client == client }
      } else if state.entries.count >= share {
        evicted = state.removeOfLargest()
      }
      let ticket = state.next
      state.next += 1
      state.entries[ticket] = Entry(client: client, channel: channel)
      state.counts[client, default: 0] += 1
      return (ticket, evicted)
    }
    evicted?.close(promise: nil)
    return ticket
  }

  /// Gives back the place of a connection that has finished, or is gone.
  func release(_ ticket: UInt64) { state.withLock { _ = $0.remove(ticket) } }
}

extension HandshakeRoom.State {
  fileprivate mutating func remove(_ ticket: UInt64) -> (any Channel)? {
    guard let entry = entries.removeValue(forKey: ticket) else { return nil }
    let count = counts[entry.client, default: 0]
    invariant(count > 0, "a connection leaves a room that does not count its client")
    counts[entry.client] = count > 1 ? count - 1 : nil
    return entry.channel
  }

  /// Removes the oldest entry of the client that has the most; of all, if no client has more than one.
  fileprivate mutating func removeOfLargest() -> (any Channel)? {
    let clients = counts.lazy.filter { $0.key != nil }
    guard let largest = clients.max(by: { $0.value < $1.value }), largest.value > 1 else {
      return removeOldest { _ in true }
    }
    return removeOldest { $0.client == largest.key }
  }

  /// The search is long only in a crowded room, and short compared with a handshake.
  fileprivate mutating func removeOldest(_ isWanted: (HandshakeRoom.Entry) -> Bool) -> (any Channel)? {
    var oldest: UInt64?
    for (ticket, entry) in entries where isWanted(entry) { oldest = min(oldest ?? ticket, ticket) }
    return oldest.flatMap { remove($0) }
  }
}

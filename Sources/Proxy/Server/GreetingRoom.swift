import NIOCore
import Synchronization

/// The connections of all loops that have not said yet who they are: whose TLS handshake or PROXY header is unfinished.
///
/// They cost a client nothing, so they have a share of `max_connections` and no more, and one address half of that.
/// Past it the oldest goes: a client that means it is through within a round trip or two, and is young.
final class GreetingRoom: Sendable {
  fileprivate struct Entry {
    let address: String
    let channel: any Channel
  }

  fileprivate struct State: ~Copyable {
    var entries: [UInt64: Entry] = [:]
    var counts: [String: Int] = [:]
    var next: UInt64 = 0
  }

  private let state = Mutex(State())

  /// The number that may be unfinished at once.
  static func share(of maxConnections: Int) -> Int { max(maxConnections / 4, 2) }

  /// Lets one in, in the place of the oldest where there is no room.
  ///
  /// - Returns: what it is known by when it leaves.
  func enter(_ channel: any Channel, from address: String, maxConnections: Int) -> UInt64 {
    let share = Self.share(of: maxConnections)
    let (ticket, evicted) = state.withLock { state -> (UInt64, (any Channel)?) in
      var evicted: (any Channel)?
      if state.counts[address, default: 0] >= max(share / 2, 1) {
        evicted = state.removeOldest { $0.address == address }
      } else if state.entries.count >= share {
        evicted = state.removeOldest { _ in true }
      }
      let ticket = state.next
      state.next += 1
      state.entries[ticket] = Entry(address: address, channel: channel)
      state.counts[address, default: 0] += 1
      return (ticket, evicted)
    }
    evicted?.close(promise: nil)
    return ticket
  }

  /// It has finished, or is gone.
  func leave(_ ticket: UInt64) { state.withLock { _ = $0.remove(ticket) } }
}

extension GreetingRoom.State {
  fileprivate mutating func remove(_ ticket: UInt64) -> (any Channel)? {
    guard let entry = entries.removeValue(forKey: ticket) else { return nil }
    let count = counts[entry.address, default: 1]
    counts[entry.address] = count > 1 ? count - 1 : nil
    return entry.channel
  }

  /// The search is long only for who crowds it, and short beside a handshake.
  fileprivate mutating func removeOldest(_ isWanted: (GreetingRoom.Entry) -> Bool) -> (any Channel)? {
    var oldest: UInt64?
    for (ticket, entry) in entries where isWanted(entry) { oldest = min(oldest ?? ticket, ticket) }
    return oldest.flatMap { remove($0) }
  }
}

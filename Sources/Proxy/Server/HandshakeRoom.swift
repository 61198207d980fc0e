import NIOCore
import Synchronization

/// The room for connections, of all loops, whose TLS handshake or PROXY header is unfinished.
///
/// Such connections cost a client nothing. Therefore all of them have a share of `max_connections`, and one address half
/// of the share. Past it the oldest is closed: an honest client finishes within a round trip or two.
final class HandshakeRoom: Sendable {
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

  /// The number of connections that may be unfinished at once.
  static func share(of maxConnections: Int) -> Int { max(maxConnections / 4, 2) }

  /// Acquires a place for a connection; closes the oldest if there is none.
  ///
  /// - Returns: The ticket with which `release` must follow.
  func acquire(_ channel: any Channel, from address: String, maxConnections: Int) -> UInt64 {
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

  /// Gives back the place of a connection that has finished, or is gone.
  func release(_ ticket: UInt64) { state.withLock { _ = $0.remove(ticket) } }
}

extension HandshakeRoom.State {
  fileprivate mutating func remove(_ ticket: UInt64) -> (any Channel)? {
    guard let entry = entries.removeValue(forKey: ticket) else { return nil }
    let count = counts[entry.address, default: 1]
    counts[entry.address] = count > 1 ? count - 1 : nil
    return entry.channel
  }

  /// The search is long only in a crowded room, and short compared with a handshake.
  fileprivate mutating func removeOldest(_ isWanted: (HandshakeRoom.Entry) -> Bool) -> (any Channel)? {
    var oldest: UInt64?
    for (ticket, entry) in entries where isWanted(entry) { oldest = min(oldest ?? ticket, ticket) }
    return oldest.flatMap { remove($0) }
  }
}

import Idempotency
import Synchronization
import Wire

/// The clients' shares of what waits, for all event loops: heads and blocks of fields that are not whole, requests whose
/// bodies are not, duplicates, and HTTP/2 streams whose responses nobody takes.
///
/// All of that costs a client next to nothing. So it has a quarter of `limits.body_memory`, of which one client has a
/// quarter, and a half of `limits.max_in_flight`, of which one client has a half: ten connections of a balancer that is
/// not known as one open a thousand streams at once. Half of both is for clients that hold little: a few strangers who
/// take all that they may leave room for a request whose body comes in a packet of its own.
final class WaitingShares: Sendable {
  /// The one whose share it is.
  enum Client: Hashable {
    case address(String)
    /// A connection that is no single client's, such as a trusted proxy's or one of a Unix socket.
    case connection(ObjectIdentifier)
  }

  struct Amount: Equatable {
    var bytes = 0
    var requests = 0
  }

  /// The amounts that clients may hold.
  struct Limits {
    /// By all of them.
    let all: Amount
    /// By all of them while one that holds more than little takes more.
    let beforeLittle: Amount
    /// By one client.
    let client: Amount
    /// By one client that holds little.
    let little: Amount

    init(_ limits: LimitSettings) {
      all = Amount(bytes: limits.bodyMemory / 4, requests: max(limits.maxInFlight / 2, 1))
      beforeLittle = all.part(of: 2)
      client = Amount(bytes: all.bytes / 4, requests: max(all.requests / 2, 1))
      little = all.part(of: 256)
    }
  }

  private struct State {
    var all = Amount()
    var clients: [Client: Amount] = [:]
  }

  private let state = Mutex(State())

  /// Adds to a client's share; false, and nothing added, if that would exceed it. A client that holds nothing may take
  /// any number of bytes: a part of a head is useless.
  func take(_ amount: Amount, of client: Client, within limits: Limits) -> Bool {
    invariant(amount.bytes >= 0 && amount.requests >= 0, "a client takes less than nothing")
    return state.withLock { state in
      let held = state.clients[client] ?? Amount()
      let all = state.all + amount
      let own = held + amount
      invariant(
        own.bytes <= all.bytes && own.requests <= all.requests, "a client holds more than all of them")
      let isLittle =
        held == Amount() || own.bytes <= limits.little.bytes && own.requests <= limits.little.requests
      let bound = isLittle ? limits.all : limits.beforeLittle
      guard all.bytes <= bound.bytes, amount.requests == 0 || all.requests <= bound.requests,
        held.bytes == 0 || own.bytes <= limits.client.bytes,
        amount.requests == 0 || own.requests <= limits.client.requests
      else { return false }
      state.all = all
      state.clients[client] = own
      return true
    }
  }

  /// Adds to a client's share regardless of its limits.
  func force(_ amount: Amount, of client: Client) {
    state.withLock { state in
      state.all = state.all + amount
      state.clients[client, default: Amount()] = (state.clients[client] ?? Amount()) + amount
    }
  }

  func give(_ amount: Amount, of client: Client) {
    let taken = Amount(bytes: -amount.bytes, requests: -amount.requests)
    state.withLock { state in
      state.all = state.all + taken
      let left = (state.clients[client] ?? Amount()) + taken
      invariant(left.bytes >= 0 && left.requests >= 0, "a client gives back more than its share holds")
      invariant(
        left.bytes <= state.all.bytes && left.requests <= state.all.requests, "all clients hold less than one"
      )
      state.clients[client] = left == Amount() ? nil : left
    }
  }

  /// The amount that all clients hold.
  var held: Amount { state.withLock { $0.all } }
}

extension WaitingShares.Amount {
  static func + (one: Self, other: Self) -> Self {
    Self(bytes: one.bytes + other.bytes, requests: one.requests + other.requests)
  }

  /// A part of the amount, with one request at least.
  fileprivate func part(of divisor: Int) -> Self {
    Self(bytes: bytes / divisor, requests: max(requests / divisor, 1))
  }
}

/// Memory that waits for one client: counted among its connection's and in the client's share. Confined to the loop of
/// its connection. Its owner must call `drop` in the end.
struct WaitingMemory {
  private let memory: ConnectionMemory
  private(set) var bytes = 0

  init(of memory: ConnectionMemory) { self.memory = memory }

  /// Counts the bytes that wait now; false, and nothing counted any more, if there is no room for them.
  mutating func count(_ waiting: Int) -> Bool {
    if waiting < bytes {
      memory.giveWaiting(bytes - waiting)
    } else if waiting > bytes, !memory.takeWaiting(waiting - bytes) {
      drop()
      return false
    }
    bytes = waiting
    return true
  }

  mutating func drop() {
    if bytes > 0 { memory.giveWaiting(bytes) }
    bytes = 0
  }
}

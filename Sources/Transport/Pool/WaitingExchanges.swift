import Idempotency
import NIOCore
import Wire

/// The exchanges that wait for a connection, in the order of their arrival.
///
/// Those of no protected route have a queue of their own: while they may take up no further connection, the others
/// overtake them.
struct WaitingExchanges {
  private typealias Queue = CircularBuffer<(number: Int, exchange: HTTPExchange)>

  private var protected = Queue(initialCapacity: 4)
  private var unprotected = Queue(initialCapacity: 4)
  private var appended = 0

  mutating func append(_ exchange: HTTPExchange) {
    invariant(!exchange.isWaiting, "an exchange waits twice for a connection")
    appended += 1
    if exchange.request.isProtected {
      protected.append((appended, exchange))
    } else {
      unprotected.append((appended, exchange))
    }
  }

  /// Returns the first exchange of each kind that still waits, in the order of their arrival.
  ///
  /// - Parameter isOverdrawn: Whether a protected one waits for others of its caller, and is overtaken.
  mutating func firsts(skipping isOverdrawn: (HTTPExchange) -> Bool) -> (HTTPExchange?, HTTPExchange?) {
    dropEnded()
    let first = protected.first { $0.exchange.isWaiting && !isOverdrawn($0.exchange) }
    let other = unprotected.first
    let isOrdered = (first?.number ?? .max) <= (other?.number ?? .max)
    return isOrdered ? (first?.exchange, other?.exchange) : (other?.exchange, first?.exchange)
  }

  /// Removes an exchange that `firsts` has returned.
  mutating func remove(_ exchange: HTTPExchange) {
    if exchange.request.isProtected {
      Self.remove(exchange, from: &protected)
    } else {
      Self.remove(exchange, from: &unprotected)
    }
  }

  private static func remove(_ exchange: HTTPExchange, from queue: inout Queue) {
    let index = queue.firstIndex { $0.exchange === exchange }
    invariant(index != nil, "an exchange leaves a queue in which it does not wait")
    if let index { queue.remove(at: index) }
  }

  /// Whether no exchange waits.
  var isEmpty: Bool { protected.isEmpty && unprotected.isEmpty }

  /// Removes and returns all exchanges.
  mutating func removeAll() -> [HTTPExchange] {
    defer { self = WaitingExchanges() }
    return (Array(protected) + Array(unprotected)).map { $0.exchange }
  }

  /// Lets go of the exchanges at the heads of the queues that no longer wait. All of a queue wait equally long, so that
  /// they come to its head soon.
  mutating func dropEnded() {
    Self.dropEnded(&protected)
    Self.dropEnded(&unprotected)
  }

  private static func dropEnded(_ queue: inout Queue) {
    while let first = queue.first, !first.exchange.isWaiting { queue.removeFirst() }
  }
}

import Idempotency
import NIOCore

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
    appended += 1
    if exchange.request.isProtected {
      protected.append((appended, exchange))
    } else {
      unprotected.append((appended, exchange))
    }
  }

  /// Returns the first exchange that still waits.
  ///
  /// - Parameter admitsUnprotected: Whether one of no protected route counts.
  mutating func first(admitsUnprotected: Bool) -> HTTPExchange? {
    dropEnded()
    guard admitsUnprotected, let other = unprotected.first else { return protected.first?.exchange }
    guard let first = protected.first, first.number < other.number else { return other.exchange }
    return first.exchange
  }

  /// Removes an exchange that `first` has returned.
  mutating func removeFirst(_ exchange: HTTPExchange) {
    if exchange.request.isProtected { protected.removeFirst() } else { unprotected.removeFirst() }
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

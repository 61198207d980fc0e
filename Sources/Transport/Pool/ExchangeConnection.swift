import Idempotency
import NIOCore
import Wire

/// The connection of one exchange: an HTTP/1.1 connection, or an HTTP/2 stream. Confined to its loop.
protocol ExchangeConnection: AnyObject, Sendable {
  /// Whether an exchange has ended on the connection, so that the backend may just be closing it. Never so for a stream:
  /// the end of its connection is the end of others' requests, which a second attempt might repeat on the next one.
  var wasUsed: Bool { get }
  /// Whether there is room for more of a streamed body.
  var isWritable: Bool { get }
  /// The number of bytes that may arrive while reading is paused, and wait below the exchange.
  var bytesAhead: Int { get }
  /// Writes the request's head, and its body unless that is streamed.
  ///
  /// From now on the connection reports to the exchange the events of the response and, by `wasSent`, the sending of
  /// the request's last byte.
  func begin(_ exchange: HTTPExchange)
  /// Writes a piece of a streamed body.
  func write(_ piece: ByteBuffer, of exchange: HTTPExchange)
  /// Ends a streamed body.
  func endBody(of exchange: HTTPExchange)
  /// Pauses or resumes reading from the backend.
  func setReading(_ reads: Bool)
  /// Handles a time-out of the exchange, which may still continue.
  func timedOut()
  /// Returns the connection unused.
  func release()
  /// Drops the exchange: nothing that still arrives is passed on.
  ///
  /// - Parameter discardsUnsent: Whether nothing of the request may reach the backend any more, as far as that can be
  ///   helped: its record may be claimed again.
  func cut(discardsUnsent: Bool)
}

/// A connection in a pool, with either version of HTTP.
protocol PooledConnection: AnyObject {
  var isOpen: Bool { get }
  /// The generation of the TLS files by which the connection was made; `nil` if it is not encrypted.
  var generation: Int? { get }
  /// The end of the idle time that began after the last use. Valid only while the connection is unused.
  var restsUntil: NIODeadline { get }
  func close()
}

extension PooledConnection {
  func hasAged(_ now: NIODeadline) -> Bool { restsUntil <= now }
}

extension HeadLimits {
  /// The limits of a backend's response head. They are higher than those for clients, because a response that is
  /// refused would leave the outcome unknown.
  static let backend = HeadLimits(headBytes: 256 << 10, maxFields: 1000)
}

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

/// The connections of a pool that are taken up by requests of no protected route, and by those of each caller. Either
/// leaves some to the others.
///
/// A tunnel or an event stream keeps its connection for as long as its client wants, and one caller may send many slow
/// requests at once: others would find no connection.
struct ConnectionShares {
  private let limit: Int
  /// The number of connections that requests without protection may take up together. They leave one at least.
  let maxUnprotected: Int
  /// The number of requests without protection that are connecting or running.
  private var unprotected = 0 {
    didSet { invariant(unprotected >= 0, "an exchange gives up a connection that it never took up") }
  }
  /// The same of protected ones.
  private var protected = 0 {
    didSet { invariant(protected >= 0, "a protected exchange gives up a connection that it never took up") }
  }
  /// The same of each caller.
  private var callers: [Int: Int] = [:]

  init(of limit: Int) {
    self.limit = limit
    // Of a single connection nothing can be left.
    maxUnprotected = limit > 1 ? limit - max(1, limit / 4) : 1
    invariant(maxUnprotected < limit || limit <= 1, "requests without protection may take up all connections")
  }

  /// Whether a connection is left to the request by those of its kind.
  ///
  /// The last quarter of what requests without protection leave is for callers that have an eighth of it at most. A
  /// caller that has more would take each connection that becomes free, once others have their part.
  func leaveOne(to request: UpstreamRequest) -> Bool {
    guard request.isProtected else { return unprotected < maxUnprotected }
    // Of fewer than four connections a caller may take up all.
    guard limit >= 4, let caller = request.caller else { return true }
    let room = limit - unprotected
    return room - protected > max(1, room / 4) || callers[caller, default: 0] < max(1, room / 8)
  }

  /// Counts a request that takes up a connection (1), or no longer does (-1).
  mutating func change(_ request: UpstreamRequest, by change: Int) {
    invariant(
      change == 1 || change == -1, "a request takes up or gives up another number of connections than one")
    guard request.isProtected else { return unprotected += change }
    protected += change
    guard let caller = request.caller else { return }
    let count = callers[caller, default: 0] + change
    invariant(count >= 0, "a caller gives up a connection that it never took up")
    invariant(count <= protected, "a caller has more connections than all callers together")
    callers[caller] = count > 0 ? count : nil
  }
}

/// A number of connections for protected requests, and one for all others.
struct ByProtection {
  private var numbers = (protected: 0, other: 0)

  subscript(isProtected: Bool) -> Int {
    get { isProtected ? numbers.protected : numbers.other }
    set {
      invariant(newValue >= 0, "a connection is counted out twice among those of its kind")
      if isProtected { numbers.protected = newValue } else { numbers.other = newValue }
    }
  }
}

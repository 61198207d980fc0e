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

import Idempotency
import NIOCore

/// What carries one exchange to the backend: a connection of HTTP/1.1, or a stream of HTTP/2. Confined to its loop.
protocol Carrier: AnyObject, Sendable {
  /// Whether an exchange has ended on its connection: the backend may just be closing it.
  var wasUsed: Bool { get }
  /// Whether there is room for more of a streamed body.
  var isWritable: Bool { get }
  /// Writes the request's head, and its body with it unless that is streamed.
  ///
  /// From here on the exchange hears of its answer, and of the request's last byte by `wasSent`.
  func begin(_ exchange: HTTPExchange)
  /// Writes a piece of a streamed body.
  func write(_ piece: ByteBuffer, of exchange: HTTPExchange)
  /// Ends a streamed body.
  func endBody(of exchange: HTTPExchange)
  /// Stops reading from the backend, or goes on.
  func setReading(_ reads: Bool)
  /// The exchange has waited for longer than it wants to. It may yet go on.
  func timedOut()
  /// Is given back without having carried anything.
  func release()
  /// The exchange wants no more of it: nothing that is still under way reaches anybody.
  func cut()
}

/// What a pool holds, whichever HTTP it speaks.
protocol PooledConnection: AnyObject {
  var isOpen: Bool { get }
  /// How long it may be kept yet, since it was used last.
  func timeLeft(_ now: NIODeadline) -> Milliseconds
  func close()
}

extension PooledConnection {
  func hasAged(_ now: NIODeadline) -> Bool { timeLeft(now) <= 0 }
}

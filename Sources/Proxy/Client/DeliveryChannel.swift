import Idempotency
import NIOCore
import Wire

/// The connection of a delivery's client: an HTTP/1.1 connection, or one HTTP/2 stream.
///
/// A delivery calls `respond` once, or `begin`, `write`…, `end`. It writes the response and returns the number of
/// bytes. After `respond`, `end` or `abort` the channel does not refer to the delivery any more.
protocol DeliveryChannel: AnyObject {
  /// The identity of the connection.
  var connection: ObjectIdentifier { get }
  /// Whether the client takes more now.
  var isWritable: Bool { get }
  /// Permits the next piece of a relayed response to be written even if no memory is left.
  func admitNextPiece()
  /// Reserves memory for a replay of this body; false if there is not enough. Call `respond` next.
  func admitReplay(_ body: ByteBuffer, of record: CompletedRecord) -> Bool
  /// Writes a whole response.
  func respond(with response: ClientResponse) -> Int
  /// Writes a response's head, and the first piece of its body.
  func begin(_ head: ClientResponseHead, with piece: ByteBuffer) -> Int
  func write(_ piece: ByteBuffer) -> Int
  /// Writes the end of a body, and its trailers if the framing has a place for them.
  func end(with piece: ByteBuffer, trailers: ByteBuffer) -> Int
  /// Writes the interim response 100 (Continue).
  func sendContinue()
  /// Writes an interim response of the backend (1xx).
  func interim(_ head: ClientResponseHead)
  /// Writes a response of 101. From then on bytes pass unchanged, both ways.
  func switchProtocols(_ head: MessageHead, label: ResponseLabel?) -> Int
  /// Resumes the body, after it was held back.
  func resumeBody()
  /// Cuts the connection or the stream: the response that was begun cannot be completed.
  func abort()
}

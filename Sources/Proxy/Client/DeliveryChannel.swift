import NIOCore
import Wire

/// Where a delivery's answer goes and its body comes from: a connection of HTTP/1.1, or one stream of HTTP/2.
///
/// The delivery says what is answered, in the order `answer`, or `begin`, `write`…, `end`; its channel puts that on the
/// wire, and says how many bytes that were. After `answer`, `end` or `abort` the channel has forgotten the delivery.
protocol DeliveryChannel: AnyObject {
  /// The connection that it is, or of which it is a stream.
  var connection: ObjectIdentifier { get }
  /// Whether the peer takes more at the moment.
  var isWritable: Bool { get }
  /// Writes a whole answer.
  func answer(_ answer: Answer) -> Int
  /// Writes an answer's head, and the first of its body.
  func begin(_ head: AnswerHead, with piece: ByteBuffer) -> Int
  func write(_ piece: ByteBuffer) -> Int
  /// Writes the last of a body, and its trailers where the framing has a place for them.
  func end(with piece: ByteBuffer, trailers: ByteBuffer) -> Int
  /// Writes an interim answer, 100 (Continue).
  func sendContinue()
  /// Writes an interim answer of the backend's (1xx).
  func interim(_ head: AnswerHead)
  /// Writes an answer of 101 and from then on passes bytes as they are, both ways.
  func switchProtocols(_ head: MessageHead) -> Int
  /// Asks for more of the body, after it was held back.
  func resumeBody()
  /// Cuts the connection or the stream: what was begun cannot be ended well.
  func abort()
}

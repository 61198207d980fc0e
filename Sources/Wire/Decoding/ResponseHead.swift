/// The head of a response, and the framing of its body.
public struct ResponseHead: Sendable {
  public enum Framing: Equatable, Sendable {
    /// There is no body, whatever the fields declare: a response to HEAD, a 2xx response to CONNECT, 1xx, 204 or 304.
    case none
    case length(Int)
    case chunked
    /// The body ends with the connection, so a truncated body cannot be detected.
    case untilClose
  }

  public var head: MessageHead
  public var framing: Framing
  /// Whether the connection persists for another request.
  public var keepAlive: Bool
  /// Whether every reader, and the backend itself, sees the same end of the response. Otherwise, what follows on the
  /// connection may still be a part of it.
  public var hasCertainEnd: Bool

  public init(head: MessageHead, framing: Framing, keepAlive: Bool, hasCertainEnd: Bool = true) {
    self.head = head
    self.framing = framing
    self.keepAlive = keepAlive
    self.hasCertainEnd = hasCertainEnd
  }

  /// Whether the final response is still to come: any 1xx except 101, which ends HTTP on the connection.
  public var isInterim: Bool { 100..<200 ~= head.status && head.status != 101 }
}

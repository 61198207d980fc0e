/// An answer's head and how its body ends.
public struct ResponseHead: Sendable {
  public enum Framing: Equatable, Sendable {
    /// There is no body, whatever the fields say: an answer to HEAD, 1xx, 204, 304.
    case none
    case length(Int)
    case chunked
    /// The body ends where the connection does: whether it is whole cannot be told.
    case untilClose
  }

  public var head: MessageHead
  public var framing: Framing
  /// Whether the server will answer another request on this connection.
  public var keepAlive: Bool

  public init(head: MessageHead, framing: Framing, keepAlive: Bool) {
    self.head = head
    self.framing = framing
    self.keepAlive = keepAlive
  }

  /// Whether the final answer is yet to come: 1xx but for 101, which ends HTTP on the connection.
  public var isInterim: Bool { 100..<200 ~= head.status && head.status != 101 }
}

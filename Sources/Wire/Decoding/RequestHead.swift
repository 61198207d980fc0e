/// The head of a request, and its consequences for the connection.
public struct RequestHead: Sendable {
  public var head: MessageHead
  public var framing: BodyFraming
  /// Whether the connection persists for another request.
  public var keepAlive: Bool
  /// Whether the client waits for a `100 Continue` before it sends the body.
  public var expectsContinue: Bool

  public init(head: MessageHead, framing: BodyFraming, keepAlive: Bool, expectsContinue: Bool) {
    self.head = head
    self.framing = framing
    self.keepAlive = keepAlive
    self.expectsContinue = expectsContinue
  }

  /// Whether bytes of a body may follow. If not, the next event is `end`, and it is available at once.
  public var hasBody: Bool { !framing.isEmpty }
}

/// The framing of a request's body, which determines its end.
public enum BodyFraming: Equatable, Sendable {
  /// There is no body, and no `Content-Length`.
  case none
  /// The length that `Content-Length` declares, in bytes; may be 0.
  case length(Int)
  /// Chunks, whose total length is not known beforehand.
  case chunked

  /// Whether nothing follows the head.
  public var isEmpty: Bool { self == .none || self == .length(0) }
}

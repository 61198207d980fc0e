/// A request's head and what follows from it for the connection.
package struct RequestHead: Sendable {
  package var head: MessageHead
  package var framing: BodyFraming
  /// Whether the client will send another request on this connection.
  package var keepAlive: Bool
  /// Whether the client waits for a `100 Continue` before it sends the body.
  package var expectsContinue: Bool

  package init(head: MessageHead, framing: BodyFraming, keepAlive: Bool, expectsContinue: Bool) {
    self.head = head
    self.framing = framing
    self.keepAlive = keepAlive
    self.expectsContinue = expectsContinue
  }

  /// Whether bytes of a body may follow; where they do not, the next event is `end` and is there at once.
  package var hasBody: Bool { !framing.isEmpty }
}

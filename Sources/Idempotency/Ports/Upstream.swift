import NIOCore
import Wire

/// A request as it goes to the backend.
///
/// A class, so that it is not copied on its way through the transport.
public final class UpstreamRequest: Sendable {
  /// Which configured backend.
  public let upstream: UpstreamSettings
  /// The method as the client spelt it.
  public let method: String
  /// The origin-form target, path and query.
  public let target: String
  /// Field lines, each ended by CRLF, end-to-end ones only: no framing, no `Connection`, no `Expect`. `Host` is in it.
  public let fields: ByteBuffer
  public let body: RequestBody
  /// Of a claimed request: what allows its one sending. `nil` for one that is passed through.
  public let permit: SendPermit?
  /// Who hears of interim answers (1xx) but 100; `nil`: they are passed over.
  public let interim: (any InterimReceiver)?
  /// The protocols that the client asks to switch to, as its `Upgrade` field lists them. A 101 is then an answer.
  public let upgrade: ByteBuffer?
  /// Whether the request authenticates the connection that it goes by (RFC 4559): no other client's may follow it.
  public let bindsConnection: Bool

  public init(
    upstream: UpstreamSettings, method: String, target: String, fields: ByteBuffer, body: RequestBody,
    permit: SendPermit?, interim: (any InterimReceiver)? = nil, upgrade: ByteBuffer? = nil,
    bindsConnection: Bool = false
  ) {
    self.upstream = upstream
    self.method = method
    self.target = target
    self.fields = fields
    self.body = body
    self.permit = permit
    self.interim = interim
    self.upgrade = upgrade
    self.bindsConnection = bindsConnection
  }
}

public enum RequestBody: Sendable {
  /// No content, and no `Content-Length`.
  case none
  /// Whole; sent with its length, also when empty.
  case whole(ByteBuffer)
  /// Read while it is sent; `length` in bytes where the client told it, else chunked.
  case streamed(any RequestBodyStream, length: Int?)
}

/// The client's body, piece by piece, with back-pressure. Confined to the loop of its connection.
public protocol RequestBodyStream: Sendable {
  /// The next piece, `nil` at the end. Throws where the client went away or broke its framing.
  func next() async throws(UpstreamFailure) -> ByteBuffer?
}

/// Hears of the interim answers to a request, on the loop of its exchange.
public protocol InterimReceiver: AnyObject, Sendable {
  func received(interim head: MessageHead)
}

/// Why there is no complete answer, and what that says about the request.
public enum UpstreamFailure: Error, Equatable, Sendable {
  /// No byte of the request was written, or the backend has said in order that it took nothing of it: it certainly was
  /// not executed.
  case notSent(String)
  /// A byte was written and no complete answer came: nobody knows.
  case answerLost(String)
  /// As `answerLost`: the time-out passed. The exchange is still open: reading may be tried again until `settle`.
  case timedOut
  /// The client's own body ended early or was malformed: a streamed request was cut.
  case requestBody(String)
}

/// The backend's side. Confined to one event loop.
public protocol Upstream: Sendable {
  associatedtype Exchange: UpstreamExchange
  /// Begins a request; what becomes of it is told by the exchange.
  ///
  /// Retries connecting by `connectRetries`, and nothing else: once a byte was written there is no second sending.
  func begin(_ request: UpstreamRequest) -> Exchange
}

/// One request's way to the backend and back. Used by one task on its loop; must be finished with `close()`.
public protocol UpstreamExchange: Sendable {
  /// Waits for the final head of the answer (1xx are passed over). `span` begins with the request's last byte, or
  /// with this call where that was sent before; over it, `timedOut`, which may be followed by another call.
  func head(within span: Milliseconds?) async throws(UpstreamFailure) -> UpstreamHead
  /// Waits until the answer, head and body, is whole, or more than `limit` bytes of its body are there. `span` as for
  /// `head`, which need not have been called. May be called again after a time-out.
  func collect(upTo limit: Int, within span: Milliseconds?) async throws(UpstreamFailure) -> Collected
  /// The next piece of the body, `nil` at its end. Takes what `collect` left. Stops reading from the backend while
  /// nobody asks (back-pressure).
  func read(within span: Milliseconds?) async throws(UpstreamFailure) -> ByteBuffer?
  /// What of the body is here already, and whether that is its end; after `head`. Never waits.
  func takeReady() -> (bytes: ByteBuffer, isEnd: Bool)
  /// Trailer lines, each ended by CRLF; known once the body has ended.
  var trailers: ByteBuffer { get }
  /// After a head of 101: sends these bytes as they come, while `read` gives the backend's until it ends.
  func tunnel(_ bytes: any RequestBodyStream)
  /// Gives the connection back, or cuts it where the answer is not whole.
  func close()
}

/// The head of a backend's answer.
public struct UpstreamHead: Sendable {
  public var head: MessageHead
  /// Whether the answer ends where its connection does, with neither length nor chunks: its completeness cannot be
  /// told.
  public var isDelimitedByClose: Bool

  public init(head: MessageHead, isDelimitedByClose: Bool) {
    self.head = head
    self.isDelimitedByClose = isDelimitedByClose
  }
}

public enum Collected: Sendable {
  /// The whole body.
  case whole(ByteBuffer)
  /// The body is larger than the limit. What came so far is still to be had from `read`.
  case tooLarge
}

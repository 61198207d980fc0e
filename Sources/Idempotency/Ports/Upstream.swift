import NIOCore
import Wire

/// A request in the form for the backend.
///
/// It is a class, so that it is not copied on its way through the transport.
public final class UpstreamRequest: Sendable {
  /// The settings of the backend.
  public let upstream: UpstreamSettings
  /// The method in the client's spelling.
  public let method: String
  /// The target in origin form: path and query.
  public let target: String
  /// The end-to-end field lines, each ended by CRLF: with `Host`, but without framing, `Connection` and `Expect`.
  public let fields: ByteBuffer
  public let body: RequestBody
  /// The permission to send a claimed request once; `nil` for a request that is passed through.
  public let permit: SendPermit?
  /// The memory in which the response waits for its reader; `nil` if it is not counted.
  public let memory: (any ResponseMemory)?
  /// The receiver of interim responses (1xx) except 100; `nil` if they are ignored.
  public let interim: (any InterimReceiver)?
  /// The protocols that the client wants to switch to, as in its `Upgrade` field. A 101 is then a final response.
  public let upgrade: ByteBuffer?
  /// Whether the request authenticates its connection (RFC 4559), on which no other client's request may follow.
  public let bindsConnection: Bool
  /// Whether a field names another method, by which the backend may take the request for a change.
  public let overridesMethod: Bool
  /// Whether the request is one of a protected route. A part of the upstream's connections is for these alone.
  public let isProtected: Bool
  /// The hash of the caller that the request counts for; `nil` if it counts for none. A caller leaves a part of the
  /// upstream's connections to the others.
  public let caller: Int?

  public init(
    upstream: UpstreamSettings, method: String, target: String, fields: ByteBuffer, body: RequestBody,
    permit: SendPermit?, memory: (any ResponseMemory)? = nil, interim: (any InterimReceiver)? = nil,
    upgrade: ByteBuffer? = nil, bindsConnection: Bool = false, overridesMethod: Bool = false,
    isProtected: Bool? = nil, caller: Int? = nil
  ) {
    self.upstream = upstream
    self.method = method
    self.target = target
    self.fields = fields
    self.body = body
    self.permit = permit
    self.memory = memory
    self.interim = interim
    self.upgrade = upgrade
    self.bindsConnection = bindsConnection
    self.overridesMethod = overridesMethod
    self.isProtected = isProtected ?? (permit != nil)
    self.caller = caller
  }
}

/// The body of a request to the backend.
public enum RequestBody: Sendable {
  /// No content, and no `Content-Length`.
  case none
  /// The whole body, sent with its length, even if it is empty.
  case whole(ByteBuffer)
  /// A body that is read while it is sent. `length` is in bytes; without it, the body is sent in chunks.
  case streamed(any RequestBodyStream, length: Int?)
}

/// The client's body in pieces, with back-pressure. Confined to the loop of its connection.
public protocol RequestBodyStream: Sendable {
  /// The next piece; `nil` at the end. Throws if the client disconnected or violated its framing.
  func next() async throws(UpstreamFailure) -> ByteBuffer?
  /// The reason for which the body cannot become whole; `nil` as long as it may. The pieces before it are still there.
  var failure: UpstreamFailure? { get }
  /// Calls `act` when the body fails. A further call replaces it.
  func whenFailed(_ act: @escaping @Sendable () -> Void)
}

/// The memory in which a response waits between the backend and its reader. Used on the loop of its exchange.
public protocol ResponseMemory: AnyObject, Sendable {
  /// Whether more of the response may be read from the backend while a part of it waits.
  var mayReadAhead: Bool { get }
  /// Notes the change in the number of bytes that wait; negative if fewer wait than before.
  func waitingChanged(by bytes: Int)
}

/// A receiver of the interim responses to a request, on the loop of its exchange.
public protocol InterimReceiver: AnyObject, Sendable {
  func received(interim head: MessageHead)
}

/// The reason why there is no complete response, and the consequence for the request.
public enum UpstreamFailure: Error, Equatable, Sendable {
  /// The request was certainly not executed: no byte of it was written, or the backend stated by the rules of the
  /// protocol that it processed nothing of it.
  case notSent(String)
  /// The request was certainly not executed, because all connections to the backend stayed in use.
  case busy(String)
  /// The request was certainly not executed, and never can be: its head is too large for the protocol of the backend.
  case headTooLarge(String)
  /// A byte was written, but no complete response arrived, so it is unknown whether the request was executed.
  case responseLost(String)
  /// The backend has responded with this status, but by this fault of its own the rest of the response cannot be read.
  case malformed(status: Int, rule: String)
  /// The time limit passed, with the same consequence as `responseLost`. The exchange is still open, and reading may be
  /// tried again until `settle` has passed.
  case timedOut
  /// The client's body ended early or was malformed, so that a streamed request was cut off.
  case requestBody(String)
}

extension UpstreamFailure: CustomStringConvertible {
  /// The reason as text, for a log.
  public var description: String {
    switch self {
    case .notSent(let reason), .busy(let reason), .headTooLarge(let reason), .responseLost(let reason),
      .malformed(_, let reason), .requestBody(let reason):
      reason
    case .timedOut: "the response did not come in time"
    }
  }
}

/// The connections to backends. Confined to one event loop.
public protocol Upstream: Sendable {
  associatedtype Exchange: UpstreamExchange
  /// Begins a request. The exchange reports its result.
  ///
  /// Only connecting is retried, up to `connectRetries` times. Once a byte was written, the request is never sent
  /// again.
  func begin(_ request: UpstreamRequest) -> Exchange
}

/// One request to the backend with its response. Used by one task on its loop; must be ended with `close()`.
public protocol UpstreamExchange: Sendable {
  /// Waits for the final head of the response. Interim responses are not returned.
  ///
  /// - Parameter span: The time limit, which begins with the request's last byte, or with this call if that was sent
  ///   before. After it, the method throws `timedOut` and may be called again.
  func head(within span: Milliseconds?) async throws(UpstreamFailure) -> UpstreamHead
  /// Calls `act` once, on the loop: when the head has arrived, when the exchange has failed, or at the end of the time
  /// limit, which counts as for `head`. A call of `head` that follows waits no longer than the rest of that time.
  func whenReady(within span: Milliseconds, _ act: @escaping @Sendable () -> Void)
  /// The final head of the response, if it has arrived.
  var readyHead: UpstreamHead? { get }
  /// Waits until the response is complete, or more than `limit` bytes of its body have arrived. May be called again
  /// after a time-out.
  ///
  /// - Parameter span: The time limit, as for `head`, which need not have been called.
  func collect(upTo limit: Int, within span: Milliseconds?) async throws(UpstreamFailure) -> Collected
  /// The next piece of the body, including the bytes that `collect` left; `nil` at the end. Reading from the backend
  /// stops while no piece is requested (back-pressure).
  func read(within span: Milliseconds?) async throws(UpstreamFailure) -> ByteBuffer?
  /// The bytes of the body that have already arrived, and whether they are its end. For use after `head`; never waits.
  func takeReady() -> (bytes: ByteBuffer, isEnd: Bool)
  /// The time when the request's last byte was sent, from which its time limit counts; `nil` before.
  var sentAt: NIODeadline? { get }
  /// The trailer lines, each ended by CRLF; complete once the body has ended.
  var trailers: ByteBuffer { get }
  /// Limits the time for which the backend may send nothing, from now to the exchange's end. A wait in which it passes
  /// throws `timedOut`. The time in which the caller reads nothing does not count.
  func limitSilence(to span: Milliseconds)
  /// Sends these bytes as they arrive, after a head of 101, while `read` returns the backend's bytes until their end.
  func tunnel(_ bytes: any RequestBodyStream)
  /// Returns the connection to the pool, or closes it if the response is not complete.
  func close()
}

/// The head of a backend's response.
public struct UpstreamHead: Sendable {
  public var head: MessageHead
  /// Whether the response ends with its connection, with neither length nor chunks, so that its completeness is
  /// unknown. False after an end that TLS has proven.
  public var isDelimitedByClose: Bool

  public init(head: MessageHead, isDelimitedByClose: Bool) {
    self.head = head
    self.isDelimitedByClose = isDelimitedByClose
  }
}

/// The result of collecting a response's body.
public enum Collected: Sendable {
  /// The whole body.
  case whole(ByteBuffer)
  /// The body is larger than the limit. The bytes received so far can still be read with `read`.
  case tooLarge
}

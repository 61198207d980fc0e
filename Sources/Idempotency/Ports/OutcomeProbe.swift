import NIOCore
import Wire

/// A query of Semel's own to a backend about a request whose response was lost: a GET, which may be sent twice.
public struct ProbeQuery: Sendable {
  public var upstream: UpstreamSettings
  /// The path and query in origin form.
  public var target: String
  /// The value of `Host`.
  public var host: String
  public var fields: [ReconcilePolicy.Field]
  /// The time limit of the whole query.
  public var timeout: Milliseconds
  /// The maximum length in bytes of a body that is kept.
  public var maxBody: Int

  public init(
    upstream: UpstreamSettings, target: String, host: String, fields: [ReconcilePolicy.Field],
    timeout: Milliseconds, maxBody: Int
  ) {
    self.upstream = upstream
    self.target = target
    self.host = host
    self.fields = fields
    self.timeout = timeout
    self.maxBody = maxBody
  }
}

/// The complete response to a query.
public struct ProbeResponse: Sendable {
  public var status: Int
  public var contentType: String?
  /// The head, by whose fields a handler may state that there was no request; `nil` if it is not known.
  public var head: MessageHead?
  /// The whole body; `nil` if it is larger than `maxBody`, may be cut, or is compressed.
  public var body: ByteBuffer?

  public init(status: Int, contentType: String? = nil, head: MessageHead? = nil, body: ByteBuffer?) {
    self.status = status
    self.contentType = contentType
    self.head = head
    self.body = body
  }
}

/// The sender of queries, which never blocks an event loop.
public protocol OutcomeProbe: Sendable {
  /// Sends a query. Returns `nil` without a complete response in time, or if too many queries are under way.
  func send(_ query: ProbeQuery) async -> ProbeResponse?
}

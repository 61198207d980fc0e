import Idempotency
import NIOCore
import Wire

/// The head of a response to a client, independent of its encoding for an HTTP version.
struct ClientResponseHead {
  /// The origin of a response.
  enum Source {
    /// A backend's response, with Semel's label.
    case backend(MessageHead, ResponseLabel?)
    /// A recorded response, and the age in seconds that it had when it was recorded.
    case recorded(CompletedRecord, RecordedResponse, age: Int)
    /// A refusal of Semel's own, with the form and the length of its document.
    case problem(Problem, ErrorFormat, length: Int)
    /// Another response of Semel's own, with the length of its body.
    case own(OwnResponse, length: Int)
  }

  /// The body that follows the head.
  enum Content: Equatable {
    /// None, whatever the fields say: the response to HEAD, 204 and 304 (RFC 9112, section 6.3).
    case none
    case length(Int)
    /// A body whose length is not known before its end.
    case unknown

    /// The content of a response to this method.
    init(length: Int?, status: Int, method: MessageHead.Method?) {
      if method == .head || status == 204 || status == 304 {
        self = .none
      } else {
        self = length.map(Content.length) ?? .unknown
      }
    }
  }

  let source: Source
  let content: Content
  /// The fields for pages of other origins; `nil` on a route without `cors`.
  var crossOrigin: CrossOrigin?
  /// The fields that the route states beyond those of others; `nil` for none.
  var routeFields: RouteFields?

  var status: Int {
    switch source {
    case .backend(let head, _): head.status
    case .recorded(_, let response, _): response.status
    case .problem(let problem, _, _): problem.status
    case .own(let response, _): response.status
    }
  }
}

/// A whole response.
struct ClientResponse {
  var head: ClientResponseHead
  let body: ByteBuffer
  let trailers: ByteBuffer

  /// Whether the body has the length that the head states.
  var hasStatedLength: Bool {
    if case .length(let length) = head.content { length == body.readableBytes } else { true }
  }

  /// A backend's response.
  init(
    _ head: MessageHead, label: ResponseLabel?, body: ByteBuffer, trailers: ByteBuffer,
    to method: MessageHead.Method
  ) {
    self.head = ClientResponseHead(
      source: .backend(head, label),
      content: .init(length: body.readableBytes, status: head.status, method: method))
    self.body = body
    self.trailers = trailers
  }

  /// A replay of a recorded response, which has no stamps any more.
  ///
  /// - Parameter age: The age that the response had when it was recorded, in seconds.
  init(
    replaying record: CompletedRecord, _ response: RecordedResponse, age: Int = 0,
    to method: MessageHead.Method
  ) {
    head = ClientResponseHead(
      source: .recorded(record, response, age: age),
      content: .init(length: response.body.readableBytes, status: response.status, method: method))
    body = response.body
    trailers = response.trailers
  }

  /// A response of Semel's own.
  init(_ response: OwnResponse, to method: MessageHead.Method) {
    body = response.body
    head = ClientResponseHead(
      source: .own(response, length: body.readableBytes),
      content: .init(length: body.readableBytes, status: response.status, method: method))
    trailers = ByteBuffer()
  }

  /// A refusal. `method` is `nil` if the request could not be read.
  init(_ problem: Problem, as format: ErrorFormat = .problem, to method: MessageHead.Method? = nil) {
    body = problem.body(as: format)
    head = ClientResponseHead(
      source: .problem(problem, format, length: body.readableBytes),
      content: .init(length: body.readableBytes, status: problem.status, method: method))
    trailers = ByteBuffer()
  }
}

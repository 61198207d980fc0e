import Idempotency
import NIOCore
import Wire

/// What a client is answered, before anybody knows how that looks on the wire of its connection or stream.
struct AnswerHead {
  /// Where an answer comes from.
  enum Source {
    /// A backend's, with what Semel says of it.
    case backend(MessageHead, AnswerLabel?)
    /// A recorded one.
    case recorded(CompletedRecord, RecordedResponse)
    /// A refusal of Semel's own (RFC 9457), with the length of its document.
    case problem(Problem, length: Int)
  }

  /// What of a body follows.
  enum Content: Equatable {
    /// None, whatever the fields say: the answer to HEAD, 204 and 304 (RFC 9112, section 6.3).
    case none
    case length(Int)
    /// Its end is known once it is there.
    case unknown

    /// The content of an answer to this method.
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

  var status: Int {
    switch source {
    case .backend(let head, _): head.status
    case .recorded(_, let response): response.status
    case .problem(let problem, _): problem.status
    }
  }
}

/// A whole answer.
struct Answer {
  let head: AnswerHead
  let body: ByteBuffer
  let trailers: ByteBuffer

  /// A backend's answer.
  init(
    _ head: MessageHead, label: AnswerLabel?, body: ByteBuffer, trailers: ByteBuffer,
    to method: MessageHead.Method
  ) {
    self.head = AnswerHead(
      source: .backend(head, label),
      content: .init(length: body.readableBytes, status: head.status, method: method))
    self.body = body
    self.trailers = trailers
  }

  /// A recorded answer, given again.
  init(replaying record: CompletedRecord, _ response: RecordedResponse, to method: MessageHead.Method) {
    head = AnswerHead(
      source: .recorded(record, response),
      content: .init(length: response.body.readableBytes, status: response.status, method: method))
    body = response.body
    trailers = response.trailers
  }

  /// A refusal; `method` is nil where the request could not be read.
  init(_ problem: Problem, to method: MessageHead.Method? = nil) {
    body = problem.body()
    head = AnswerHead(
      source: .problem(problem, length: body.readableBytes),
      content: .init(length: body.readableBytes, status: problem.status, method: method))
    trailers = ByteBuffer()
  }
}

import CCurl
import Idempotency
import Loop
import NIOCore

/// One request's way through libcurl: what the port promises, on its loop.
package final class CurlExchange: UpstreamExchange, @unchecked Sendable {
  /// How much of a body is taken from the backend while nobody reads it.
  static let highWater = 256 * 1024

  enum Stage {
    /// All transfers of the upstream are at work.
    case waiting(LoopTimers.Token)
    /// Between two attempts to connect.
    case backingOff(LoopTimers.Token)
    case running(CurlTransfer)
    case ended
  }

  let request: UpstreamRequest
  let upstream: CurlUpstream
  let pool: TransferPool
  let signal: Signal
  var stage = Stage.ended
  var gate: SendGate
  var backoff: ConnectBackoff
  var answer: AnswerReader
  var feed: BodyFeed?
  var failure: UpstreamFailure?

  /// What has come of the body and was not taken yet.
  var body = ByteBuffer()
  /// From here on reading pauses; `collect` raises it.
  var pauseAt = CurlExchange.highWater
  var isReadPaused = false
  var isSendPaused = false
  /// Whether libcurl waits for room to write.
  var wantsToWrite = false
  /// libcurl reads no more: it saw the last chunk, or the connection's end.
  var hasStoppedReading = false
  /// Whether there was something to read when libcurl read last.
  var hasBytes = false
  /// The connection's socket, as libcurl told it last.
  var socket: Int32 = -1
  var sentAt: NIODeadline?
  /// Fires where libcurl lets the request wait for a stream.
  var streamTimer: LoopTimers.Token?

  init(_ request: UpstreamRequest, upstream: CurlUpstream, pool: TransferPool) {
    self.request = request
    self.upstream = upstream
    self.pool = pool
    signal = Signal(timers: upstream.context.timers)
    gate = SendGate(request)
    backoff = ConnectBackoff(retries: request.upstream.connectRetries)
    answer = AnswerReader(
      isAnswerToHead: request.method == "HEAD", allowsStreams: request.upstream.http2 != .off)
    if case .streamed(_, let length) = request.body { feed = BodyFeed(length: length) }
  }

  package var trailers: ByteBuffer { answer.trailers }

  package func head(within span: Milliseconds?) async throws(UpstreamFailure) -> UpstreamHead {
    try await wait(for: .head, within: span)
    guard let head = answer.head else { preconditionFailure("CurlExchange: waited for a head, and has none") }
    return UpstreamHead(head: head, isDelimitedByClose: answer.framing == .close)
  }

  package func collect(upTo limit: Int, within span: Milliseconds?) async throws(UpstreamFailure) -> Collected
  {
    pauseAt = max(Self.highWater, min(limit, .max - 1) + 1)
    resumeReading()
    try await wait(for: .body(upTo: limit), within: span)
    pauseAt = Self.highWater
    return body.readableBytes > limit ? .tooLarge : .whole(takeBody())
  }

  package func read(within span: Milliseconds?) async throws(UpstreamFailure) -> ByteBuffer? {
    try await wait(for: .piece, within: span)
    guard body.readableBytes > 0 else { return nil }
    let piece = takeBody()
    resumeReading()
    return piece
  }

  package func takeReady() -> (bytes: ByteBuffer, isEnd: Bool) {
    let piece = takeBody()
    resumeReading()
    return (piece, answer.isWhole && body.readableBytes == 0)
  }

  package func tunnel(_ bytes: any RequestBodyStream) {
    preconditionFailure("CurlExchange: a tunnel was begun, and libcurl never answers 101")
  }

  package func close() {
    if failure == nil, !answer.isWhole { failure = gate.failure("the exchange was closed") }
    guard isOpen else { return }
    leaveStage()
    signal.set()
    if !upstream.isTurning { upstream.turn() }
  }

  private var isOpen: Bool {
    if case .ended = stage { false } else { true }
  }

  private func takeBody() -> ByteBuffer {
    let piece = body
    body = ByteBuffer()
    return piece
  }
}

extension CurlExchange: AwaitableExchange {
  var hasHead: Bool { answer.head != nil }

  var isWhole: Bool { answer.isWhole }

  var waitingBytes: Int { body.readableBytes }

  var uploadProgress: Int64? {
    guard gate.hasOpened, !(feed?.isStarving ?? false), case .running(let transfer) = stage else {
      return nil
    }
    return transfer.easy.uploaded
  }
}

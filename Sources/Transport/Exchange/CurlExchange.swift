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
  let pool: UpstreamPool
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

  init(_ request: UpstreamRequest, upstream: CurlUpstream, pool: UpstreamPool) {
    self.request = request
    self.upstream = upstream
    self.pool = pool
    signal = Signal(timers: upstream.context.timers)
    gate = SendGate(request)
    backoff = ConnectBackoff(retries: request.upstream.connectRetries)
    answer = AnswerReader(isAnswerToHead: request.method == "HEAD")
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

extension CurlExchange {
  /// What a call waits for.
  enum Awaited {
    case head
    case body(upTo: Int)
    case piece
  }

  private func isThere(_ awaited: Awaited) -> Bool {
    switch awaited {
    case .head: answer.head != nil
    case .body(let limit): answer.isWhole || body.readableBytes > limit
    case .piece: answer.isWhole || body.readableBytes > 0
    }
  }

  private func wait(for awaited: Awaited, within span: Milliseconds?) async throws(UpstreamFailure) {
    var began = sentAt.map { _ in NIODeadline.now() }
    while !isThere(awaited) {
      if let failure { throw failure }
      guard let span else {
        _ = await signal.wait()
        continue
      }
      if began == nil { began = sentAt }
      if let began {
        let left = span.count - (NIODeadline.now() - began).nanoseconds / 1_000_000
        if left <= 0 { throw .timedOut }
        _ = await signal.wait(milliseconds: left)
      } else if await stalls(within: span), !isThere(awaited) {
        throw .timedOut
      }
    }
  }

  /// Whether the backend takes nothing of a request for a whole span. Waiting for the client does not count, nor
  /// does connecting, which has a time-out of its own.
  private func stalls(within span: Milliseconds) async -> Bool {
    let before = uploaded
    guard await signal.wait(milliseconds: span.count) == .timedOut else { return false }
    let isStarving = feed?.isStarving ?? false
    return gate.hasOpened && sentAt == nil && !isStarving && failure == nil && uploaded == before
  }

  private var uploaded: Int64 {
    if case .running(let transfer) = stage { transfer.easy.uploaded } else { 0 }
  }
}

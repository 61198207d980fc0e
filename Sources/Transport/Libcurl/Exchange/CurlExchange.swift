import CCurl
import Idempotency
import Loop
import NIOCore

/// One request's way through libcurl: what the port promises, on its loop.
public final class CurlExchange: UpstreamExchange, @unchecked Sendable {
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

  var body = ByteBuffer()
  var pauseAt = highWater
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

  init(_ request: UpstreamRequest, upstream: CurlUpstream, pool: TransferPool) {
    self.request = request
    self.upstream = upstream
    self.pool = pool
    signal = Signal(timers: upstream.context.timers)
    gate = SendGate(request)
    backoff = ConnectBackoff(retries: request.upstream.connectRetries)
    answer = AnswerReader(isAnswerToHead: request.method == "HEAD")
    if case .streamed(_, let length) = request.body { feed = BodyFeed(length: length) }
  }

  public var trailers: ByteBuffer { answer.trailers }

  public func tunnel(_ bytes: any RequestBodyStream) {
    preconditionFailure("CurlExchange: a tunnel was begun, and libcurl never answers 101")
  }

  public func close() {
    if failure == nil, !answer.isWhole { failure = gate.failure("the exchange was closed") }
    guard isOpen else { return }
    leaveStage()
    signal.set()
    if !upstream.isTurning { upstream.turn() }
  }

  private var isOpen: Bool {
    if case .ended = stage { false } else { true }
  }
}

extension CurlExchange: BufferedExchange {
  var finalHead: UpstreamHead? {
    answer.head.map { UpstreamHead(head: $0, isDelimitedByClose: answer.framing == .close) }
  }

  var hasHead: Bool { answer.head != nil }

  var isWhole: Bool { answer.isWhole }

  var uploadProgress: Int64? {
    guard gate.hasOpened, !(feed?.isStarving ?? false), case .running(let transfer) = stage else {
      return nil
    }
    return transfer.easy.uploaded
  }
}

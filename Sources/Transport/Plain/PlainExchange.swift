import Idempotency
import Loop
import NIOCore
import Wire

/// One request's way over a plain connection: what the port promises, on its loop.
package final class PlainExchange: UpstreamExchange, @unchecked Sendable {
  /// How much of a body is taken from the backend while nobody reads it.
  static let highWater = 256 << 10

  enum Stage {
    /// All connections of the upstream are at work.
    case waiting(LoopTimers.Token)
    /// A connection is being made.
    case connecting
    /// Between two attempts to connect.
    case backingOff(LoopTimers.Token)
    case running(PlainConnection)
    case ended
  }

  let request: UpstreamRequest
  let pool: PlainPool
  let context: EventLoopContext
  let signal: Signal
  var stage = Stage.ended
  var gate: SendGate
  var backoff: ConnectBackoff

  private(set) var head: ResponseHead?
  private(set) var isWhole = false
  package private(set) var trailers = ByteBuffer()
  /// What has come of the body and was not taken yet.
  private(set) var body = ByteBuffer()
  /// From here on reading pauses; `collect` raises it.
  private var pauseAt = highWater
  var failure: UpstreamFailure?

  var sentAt: NIODeadline?
  /// Grows with each piece of the request that the connection had room for.
  var uploaded: Int64 = 0
  /// Whether the client's body is waited for.
  var isStarving = false
  /// Set when the connection takes more of a streamed body.
  lazy var room = Signal(timers: context.timers)

  init(_ request: UpstreamRequest, pool: PlainPool, context: EventLoopContext) {
    self.request = request
    self.pool = pool
    self.context = context
    signal = Signal(timers: context.timers)
    gate = SendGate(request)
    backoff = ConnectBackoff(retries: request.upstream.connectRetries)
  }

  package func head(within span: Milliseconds?) async throws(UpstreamFailure) -> UpstreamHead {
    try await wait(for: .head, within: span)
    guard let head else { preconditionFailure("PlainExchange: waited for a head, and has none") }
    return UpstreamHead(head: head.head, isDelimitedByClose: head.framing == .untilClose)
  }

  package func collect(upTo limit: Int, within span: Milliseconds?) async throws(UpstreamFailure) -> Collected
  {
    pauseAt = max(Self.highWater, min(limit, .max - 1) + 1)
    updateReading()
    try await wait(for: .body(upTo: limit), within: span)
    pauseAt = Self.highWater
    return body.readableBytes > limit ? .tooLarge : .whole(takeBody())
  }

  package func read(within span: Milliseconds?) async throws(UpstreamFailure) -> ByteBuffer? {
    try await wait(for: .piece, within: span)
    guard body.readableBytes > 0 else { return nil }
    let piece = takeBody()
    updateReading()
    return piece
  }

  package func takeReady() -> (bytes: ByteBuffer, isEnd: Bool) {
    let piece = takeBody()
    updateReading()
    return (piece, isWhole)
  }

  package func close() {
    if failure == nil, !isWhole { failure = gate.failure("the exchange was closed") }
    if case .ended = stage { return }
    leaveStage()
    signal.set()
  }

  private func takeBody() -> ByteBuffer {
    let piece = body
    body = ByteBuffer()
    return piece
  }

  /// Holds the backend back while nobody reads, and lets it go on.
  private func updateReading() {
    guard case .running(let connection) = stage else { return }
    connection.setReading(body.readableBytes < pauseAt)
  }
}

extension PlainExchange: AwaitableExchange {
  var hasHead: Bool { head != nil }

  var waitingBytes: Int { body.readableBytes }

  var uploadProgress: Int64? {
    guard gate.hasOpened, !isStarving, case .running = stage else { return nil }
    return uploaded
  }
}

// What the connection tells.
extension PlainExchange {
  /// Whether the whole request was handed to the kernel, or will be before anything else.
  var isSent: Bool { sentAt != nil }

  func received(_ head: ResponseHead) {
    self.head = head
    if case .length(let length) = head.framing, length > Self.usualRead {
      body.reserveCapacity(min(length, Self.highWater))
    }
    signal.set()
  }

  func received(_ piece: ByteBuffer) {
    if body.capacity == 0 { body = piece } else { body.writeImmutableBuffer(piece) }
    if body.readableBytes >= pauseAt { updateReading() }
    signal.set()
  }

  func ended(trailers: ByteBuffer) {
    self.trailers = trailers
    isWhole = true
    stage = .ended
    signal.set()
  }

  /// The answer is none.
  func failed(_ reason: String) { fail(gate.failure(reason)) }

  func becameWritable() { room.set() }

  /// Beyond it a body does not come with its head.
  private static var usualRead: Int { 4096 }
}

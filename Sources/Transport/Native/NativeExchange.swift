import Idempotency
import Loop
import NIOCore
import Wire

/// One request's way over a connection of HTTP/1.1, or a stream of HTTP/2: what the port promises, on its loop.
public final class NativeExchange: UpstreamExchange, @unchecked Sendable {
  enum Stage {
    /// All connections of the upstream are at work.
    case waiting(LoopTimers.Token)
    /// A connection is being made, or a stream on one.
    case connecting
    /// Between two attempts to connect.
    case backingOff(LoopTimers.Token)
    case running(any Carrier)
    case ended
  }

  let request: UpstreamRequest
  let pool: NativePool
  let context: EventLoopContext
  let signal: Signal
  var stage = Stage.ended
  var gate: SendGate
  var backoff: ConnectBackoff

  private(set) var head: ResponseHead?
  private(set) var isWhole = false
  public private(set) var trailers = ByteBuffer()
  var body = ByteBuffer()
  var pauseAt = highWater
  var failure: UpstreamFailure?

  var sentAt: NIODeadline?
  /// Grows with each piece of the request that the connection had room for.
  var uploaded: Int64 = 0
  /// Whether the client's body is waited for.
  var isStarving = false
  /// Whether it was sent once more.
  var isRepeated = false
  /// Set when the connection takes more of a streamed body.
  lazy var room = Signal(timers: context.timers)

  init(_ request: UpstreamRequest, pool: NativePool, context: EventLoopContext) {
    self.request = request
    self.pool = pool
    self.context = context
    signal = Signal(timers: context.timers)
    gate = SendGate(request)
    backoff = ConnectBackoff(retries: request.upstream.connectRetries)
  }

  public func close() {
    if failure == nil, !isWhole { failure = gate.failure("the exchange was closed") }
    if case .ended = stage { return }
    leaveStage()
    signal.set()
  }
}

extension NativeExchange: BufferedExchange {
  var hasHead: Bool { head != nil }

  var finalHead: UpstreamHead? {
    head.map { UpstreamHead(head: $0.head, isDelimitedByClose: $0.framing == .untilClose) }
  }

  func updateReading() {
    guard case .running(let carrier) = stage else { return }
    carrier.setReading(body.readableBytes < pauseAt)
  }

  var uploadProgress: Int64? {
    guard gate.hasOpened, !isStarving, case .running = stage else { return nil }
    return uploaded
  }
}

// What the connection tells.
extension NativeExchange {
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

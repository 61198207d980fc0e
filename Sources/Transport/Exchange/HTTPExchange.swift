import Idempotency
import Loop
import NIOCore
import Wire

/// One request's way over a connection of HTTP/1.1, or a stream of HTTP/2: what the port promises, on its loop.
public final class HTTPExchange: UpstreamExchange, @unchecked Sendable {
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
  let pool: ConnectionPool
  let context: EventLoopContext
  /// Set whenever more of the response has come, or it has failed.
  let signal: Signal
  var stage = Stage.ended
  var gate: SendGate
  var backoff: ConnectBackoff

  private(set) var head: ResponseHead?
  /// Whether every byte of the response has come.
  private(set) var isWhole = false
  public private(set) var trailers = ByteBuffer()
  /// The part of the body that has come and was not taken yet.
  var body = ByteBuffer()
  /// From here on reading pauses; `collect` raises it.
  var pauseAt = highWater
  /// Why there will be no more of the response.
  var failure: UpstreamFailure?

  /// When the request's last byte was handed to the kernel.
  var sentAt: NIODeadline?
  /// When the backend last took a part of the request, or the client gave one; `nil`: not yet.
  var takenAt: NIODeadline?
  /// Whether the client's body is waited for.
  var isStarving = false
  /// Whether it was sent once more.
  var isRepeated = false
  /// Set when the connection takes more of a streamed body.
  lazy var room = Signal(timers: context.timers)

  init(_ request: UpstreamRequest, pool: ConnectionPool, context: EventLoopContext) {
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

extension HTTPExchange {
  /// The bytes of a body that are taken from the backend while nobody reads it.
  static let highWater = 256 << 10

  /// Holds the backend back while nobody reads, and lets it go on.
  func updateReading() {
    guard case .running(let carrier) = stage else { return }
    carrier.setReading(body.readableBytes < pauseAt)
  }

  /// Whether it is claimed and has a body: then it begins only where that can follow.
  var needsWindow: Bool {
    guard request.permit != nil else { return false }
    switch request.body {
    case .none: return false
    case .whole(let body): return body.readableBytes > 0
    case .streamed: return true
    }
  }

  /// The backend has taken a part of the request.
  func wasTaken() { takenAt = .now() }
}

// What the connection tells.
extension HTTPExchange {
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
  private static let usualRead = 4096
}

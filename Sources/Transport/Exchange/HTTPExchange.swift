import Idempotency
import NIOCore
import Platform
import Wire

/// One request and its response on an HTTP/1.1 connection or an HTTP/2 stream. Confined to its loop.
public final class HTTPExchange: UpstreamExchange, @unchecked Sendable {
  enum Stage {
    /// All connections of the upstream are in use.
    case waiting(LoopTimers.Token)
    /// A connection is being established, or a stream is being opened on one.
    case connecting
    /// The pause between two attempts to connect.
    case backingOff(LoopTimers.Token)
    case running(any ExchangeConnection)
    case ended

    /// The number of connections that the exchange takes up, or shares.
    fileprivate var takesConnection: Int {
      switch self {
      case .connecting, .running: 1
      case .waiting, .backingOff, .ended: 0
      }
    }
  }

  let request: UpstreamRequest
  let pool: ConnectionPool
  let context: EventLoopContext
  /// Set whenever more of the response has arrived, or the exchange has failed.
  let signal: Signal
  var stage = Stage.ended {
    didSet {
      guard !request.isProtected else { return }
      pool.changeUnprotectedCount(by: stage.takesConnection - oldValue.takesConnection)
    }
  }
  var gate: SendGate
  var backoff: ConnectBackoff

  private(set) var head: ResponseHead?
  /// Whether the complete response has arrived.
  private(set) var isWhole = false
  public private(set) var trailers = ByteBuffer()
  /// The part of the body that has arrived and was not taken yet.
  var body = ByteBuffer()
  /// The size of `body` at which reading pauses, in bytes. `collect` sets another one.
  var pauseAt = highWater
  /// The number of bytes of `body` for which the caller has memory already.
  var covered = 0
  private var isPaused = false
  /// The number of bytes that are counted as waiting in the request's memory.
  private var counted = 0
  /// The failure after which no more of the response will arrive.
  var failure: UpstreamFailure?

  /// The time when the request's last byte was passed to the kernel.
  public internal(set) var sentAt: NIODeadline?
  /// The time when the backend last took a part of the request, or the client supplied one; `nil` before.
  var takenAt: NIODeadline?
  /// The time of the first call that awaits the head.
  var calledAt: NIODeadline?
  /// The time for which the backend may send nothing, and the time since which it counts; `nil` for no limit.
  private(set) var silence: (limit: Milliseconds, since: NIODeadline)?
  /// Whether the exchange waits for the client's body.
  var isStarving = false
  /// Whether the request was sent a second time.
  var isRepeated = false
  /// Set when the connection can take more of a streamed body, and when it takes no more of it.
  lazy var room = Signal(timers: context.timers)
  /// Whether a task passes on what the client sends, and so may wait for room.
  var isPumping = false

  init(_ request: UpstreamRequest, pool: ConnectionPool, context: EventLoopContext) {
    self.request = request
    self.pool = pool
    self.context = context
    signal = Signal(timers: context.timers)
    gate = SendGate(request)
    backoff = ConnectBackoff(retries: request.upstream.connectRetries)
  }

  public func close() {
    context.loop.assertInEventLoop()
    if failure == nil, !isWhole { failure = gate.failure("the exchange was closed") }
    body = ByteBuffer()
    if case .ended = stage { return countWaiting() }
    leaveStage()
    signal.set()
  }

  public func limitSilence(to span: Milliseconds) {
    context.loop.assertInEventLoop()
    silence = (span, .now())
    signal.set()
  }
}

extension HTTPExchange {
  /// The number of body bytes that are read from the backend ahead of the reader.
  static let highWater = 256 << 10
  /// The same while the body is collected, besides what the caller has memory for: a response that fits one read.
  static let collectedAhead = 64 << 10

  /// Pauses reading from the backend while the reader lags behind, or memory for more is missing, and resumes it. At
  /// least one piece is read in any case.
  func updateReading() {
    if case .running(let connection) = stage {
      let isInMemory = body.readableBytes <= covered || request.memory?.mayReadAhead ?? true
      isPaused = body.readableBytes >= pauseAt || !isInMemory
      connection.setReading(!isPaused)
    }
    countWaiting()
  }

  /// Counts the waiting bytes: those of the body for which the caller has no memory and, while reading is paused, those
  /// that may still arrive below.
  func countWaiting() {
    var waiting = max(0, body.readableBytes - covered)
    if isPaused, case .running(let connection) = stage { waiting += connection.bytesAhead }
    guard waiting != counted else { return }
    request.memory?.waitingChanged(by: waiting - counted)
    counted = waiting
  }

  /// Whether the request is claimed and has a body. Such a request begins only on a connection where its body can
  /// follow.
  var needsWindow: Bool {
    guard request.permit != nil else { return false }
    switch request.body {
    case .none: return false
    case .whole(let body): return body.readableBytes > 0
    case .streamed: return true
    }
  }

  /// Records that the backend has taken a part of the request.
  func wasTaken() { takenAt = .now() }
}

// The events that the connection reports.
extension HTTPExchange {
  /// Whether the whole request was passed to the kernel, or will be before anything else.
  var isSent: Bool { sentAt != nil }

  /// Handles an interim response other than 100, which the backend sends of its own accord.
  func received(interim head: MessageHead) {
    context.loop.assertInEventLoop()
    silence?.since = .now()
    request.interim?.received(interim: head)
  }

  func received(_ head: ResponseHead) {
    context.loop.assertInEventLoop()
    self.head = head
    if case .length(let length) = head.framing, length > Self.defaultRead {
      body.reserveCapacity(min(length, Self.highWater))
    }
    signal.set()
  }

  func received(_ piece: ByteBuffer) {
    context.loop.assertInEventLoop()
    silence?.since = .now()
    if body.capacity == 0 { body = piece } else { body.writeImmutableBuffer(piece) }
    if body.readableBytes > covered || body.readableBytes >= pauseAt { updateReading() }
    signal.set()
  }

  func ended(trailers: ByteBuffer) {
    context.loop.assertInEventLoop()
    self.trailers = trailers
    isWhole = true
    stage = .ended
    if isPumping { room.set() }
    countWaiting()
    signal.set()
  }

  /// Handles a response that is malformed.
  func failed(_ reason: String) { fail(gate.failure(reason)) }

  func becameWritable() { room.set() }

  /// The body length above which a buffer is reserved, in bytes. A shorter body usually arrives together with its head.
  private static let defaultRead = 4096
}

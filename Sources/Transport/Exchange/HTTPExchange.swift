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

    /// Whether a timer, or a connection, holds the exchange.
    var isHeld: Bool {
      switch self {
      case .waiting, .backingOff, .running: true
      case .connecting, .ended: false
      }
    }
  }

  let request: UpstreamRequest
  private(set) var pool: ConnectionPool
  let context: EventLoopContext
  /// Set whenever more of the response has arrived, or the exchange has failed.
  let signal: Signal
  var stage = Stage.ended {
    didSet {
      pool.changeCount(of: request, by: stage.takesConnection - oldValue.takesConnection)
      if pace.isTracked, stage.takesConnection == 0 {
        pace.isTracked = false
        pool.removeHeldUp(self)
      }
    }
  }
  var gate: SendGate
  var backoff: ConnectBackoff

  private(set) var head: ResponseHead?
  /// Whether the complete response has arrived.
  private(set) var isWhole = false
  /// Whether a response that only the connection's end delimits is certainly complete, by TLS's own mark of the end.
  private(set) var endIsProven = false
  public private(set) var trailers = ByteBuffer()
  /// The part of the body that has arrived and was not taken yet.
  var body = ByteBuffer()
  /// The size of `body` at which reading pauses, in bytes. `collect` sets another one.
  var pauseAt = highWater
  /// The number of bytes of `body` for which the caller has memory already.
  var covered = 0
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
  var pace = ClientPace()
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

  /// Starts the exchange in another pool. Nothing of the request was sent yet.
  func start(in pool: ConnectionPool) {
    invariant(head == nil && sentAt == nil, "a request that was sent begins anew in another pool")
    leaveStage()
    self.pool = pool
    pool.start(self)
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
      pace.setPaused(body.readableBytes >= pauseAt || !isInMemory, now: .now())
      if pace.isPaused { mayBeHeldUp() }
      connection.setReading(!pace.isPaused)
    }
    countWaiting()
  }

  /// Counts the waiting bytes: those of the body for which the caller has no memory and, while reading is paused, those
  /// that may still arrive below.
  func countWaiting() {
    var waiting = max(0, body.readableBytes - covered)
    if pace.isPaused, case .running(let connection) = stage { waiting += connection.bytesAhead }
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

// The pace of the client.
extension HTTPExchange {
  /// Whether the exchange waits for its client now.
  var isHeldUp: Bool { pace.isAwaited(hasHead: head != nil, hasBody: body.readableBytes > 0) }

  /// Notes that the exchange may be held up by its client.
  func mayBeHeldUp() {
    guard !pace.isTracked, !request.isProtected, case .running = stage else { return }
    pace.isTracked = true
    pool.addHeldUp(self)
  }
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
    invariant(self.head == nil && !isWhole, "a request gets a second response")
    self.head = head
    if case .length(let length) = head.framing, length > Self.defaultRead {
      body.reserveCapacity(min(length, Self.highWater))
    }
    signal.set()
  }

  func received(_ piece: ByteBuffer) {
    context.loop.assertInEventLoop()
    invariant(head != nil && !isWhole, "bytes of a body outside of its response")
    silence?.since = .now()
    if body.capacity == 0 { body = piece } else { body.writeImmutableBuffer(piece) }
    if body.readableBytes > covered || body.readableBytes >= pauseAt { updateReading() }
    signal.set()
  }

  /// Handles the end of the response.
  ///
  /// - Parameter isProven: Whether the end of the connection, which is that of the response, was the backend's own word.
  func ended(trailers: ByteBuffer, isProven: Bool = false) {
    context.loop.assertInEventLoop()
    invariant(head != nil && !isWhole, "the end of a response that has none, or a second one")
    self.trailers = trailers
    isWhole = true
    endIsProven = isProven
    stage = .ended
    if isPumping { room.set() }
    countWaiting()
    signal.set()
  }

  func becameWritable() { room.set() }

  /// The body length above which a buffer is reserved, in bytes. A shorter body usually arrives together with its head.
  private static let defaultRead = 4096
}

/// The delays between attempts to connect: the upper bound doubles up to a cap, and each delay is drawn evenly from
/// zero to the bound.
struct ConnectBackoff {
  /// The first bound, in milliseconds: long enough for a backend's accept queue to drain, and short compared with the
  /// connect time-out.
  private static let first: Int64 = 25
  private static let cap = UpstreamSettings.maxConnectPause.count

  private let retries: Int
  private var tried = 0
  private var bounds = Backoff(first: first, max: cap)

  init(retries: Int) { self.retries = retries }

  /// Returns the delay before the next attempt; `nil` if the attempts are exhausted.
  mutating func next(using random: inout some RandomNumberGenerator) -> Milliseconds? {
    guard tried < retries else { return nil }
    tried += 1
    return Milliseconds(Int64.random(in: 0...bounds.next(), using: &random))
  }
}

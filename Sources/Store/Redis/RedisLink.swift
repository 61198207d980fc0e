import Idempotency
import Logging
import Loop
import NIOCore
import NIOPosix

/// What uses a link. Called on its loop alone.
protocol RedisLinkUser: AnyObject {
  /// A connection is ready for commands.
  /// - Returns: The reason why this Redis is not accepted.
  func linkIsUp(_ greeting: RedisGreeting) -> String?
  /// The next reply, in the order of the commands.
  func linkReceived(_ reply: borrowing HiredisReply)
  /// All that has come so far was handed over.
  func linkReadAll()
  /// What was appended until now has been written.
  func linkWrote()
  /// The connection is gone, or an attempt to connect has failed.
  func linkIsDown(_ reason: String)
}

/// Keeps one connection to Redis: connects, greets, and comes back after a loss. Confined to its loop.
final class RedisLink: @unchecked Sendable {
  private enum State {
    /// Not begun, or ended for good.
    case closed
    /// The socket is being connected, or the replies to the greeting are awaited.
    case connecting(RedisChannelHandler?, RedisHandshake)
    case up(RedisChannelHandler)
    /// Until the next attempt.
    case waiting
  }

  /// A frozen Redis still accepts connections, and each attempt leaves one with it: so an attempt waits for long.
  private static let attemptSpan: TimeAmount = .seconds(2)
  /// Beyond it the buffer is not kept for the next commands.
  private static let keptCapacity = 1 << 18

  let context: EventLoopContext
  let settings: RedisEndpointSettings
  let counters = RedisCounters()
  private let carriesRecords: Bool
  private var logger: Logger
  private var state = State.closed
  private var backoff = RedisBackoff()
  private var attemptLimit: Scheduled<Void>?
  private var attemptPatience = RedisPatience()
  private var retry: Scheduled<Void>?
  private var outbound = ByteBufferAllocator().buffer(capacity: 4096)
  private var isFlushDue = false
  /// Until it is closed. Not weak, since the user's every holder would then be counted elsewhere, which is slow.
  var user: (any RedisLinkUser)?
  /// Since when there is no connection, and why; `nil` while there is one, and before the first failure.
  private(set) var outage: (since: BootInstant, reason: String)?

  init(context: EventLoopContext, settings: RedisEndpointSettings, carriesRecords: Bool, logger: Logger) {
    self.context = context
    self.settings = settings
    self.carriesRecords = carriesRecords
    self.logger = logger
  }

  var isUp: Bool {
    if case .up = state { true } else { false }
  }

  /// Whether replies wait in the socket, which a loop that stood still has not read yet.
  var hasUnread: Bool {
    switch state {
    case .up(let handler), .connecting(let handler?, _): handler.hasUnread
    case .connecting(nil, _), .waiting, .closed: false
    }
  }

  /// Whether no connection stood for longer than one call may take: waiting for one has no point then.
  var isOutageLong: Bool {
    outage.map { BootInstant(nanoseconds: bootTimeNanoseconds()) - $0.since >= settings.timeout } ?? false
  }

  func start() {
    guard case .closed = state else { return }
    connect()
  }

  /// Ends it for good.
  func close() {
    let before = state
    state = .closed
    attemptLimit?.cancel()
    retry?.cancel()
    drop(before, "Semel is shutting down")
    user = nil
  }

  /// Appends commands; all those of one turn of the loop are written together at its end.
  func append(_ write: (inout ByteBuffer) -> Void) {
    write(&outbound)
    guard !isFlushDue else { return }
    isFlushDue = true
    context.loop.execute { self.flush() }
  }

  private func flush() {
    isFlushDue = false
    guard case .up(let handler) = state, outbound.readableBytes > 0 else { return }
    send(to: handler)
    user?.linkWrote()
  }

  private func send(to handler: RedisChannelHandler) {
    handler.write(outbound)
    if outbound.capacity > Self.keptCapacity {
      outbound = ByteBufferAllocator().buffer(capacity: 4096)
    } else {
      outbound.clear()
    }
  }
}

extension RedisLink {
  private func connect() {
    state = .connecting(nil, RedisHandshake(settings, carriesRecords: carriesRecords))
    attemptPatience = RedisPatience()
    limitAttempt(to: Milliseconds(Self.attemptSpan.nanoseconds / 1_000_000))
    let bootstrap = ClientBootstrap(group: context.loop)
      .connectTimeout(Self.attemptSpan)
      // A second read would mostly find nothing.
      .channelOption(.maxMessagesPerRead, value: 1)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(RedisChannelHandler(link: self))
        }
      }
    let connected =
      switch settings.address {
      case .tcp(let host, let port): bootstrap.connect(host: host, port: port)
      case .unix(let path): bootstrap.connect(unixDomainSocketPath: path)
      }
    connected.whenFailure { error in
      guard case .connecting(nil, _) = self.state else { return }
      self.fail("Redis at \(self.settings.address) cannot be reached: \(Self.text(of: error))")
    }
  }

  private func limitAttempt(to span: Milliseconds) {
    let due = BootInstant(nanoseconds: bootTimeNanoseconds()) + span
    attemptLimit = context.loop.scheduleTask(in: .milliseconds(span.count)) { [self] in
      let now = BootInstant(nanoseconds: bootTimeNanoseconds())
      switch attemptPatience.judge(due: due, now: now, hasUnread: hasUnread) {
      case .readUntil(let later): limitAttempt(to: later - now)
      case .over: fail("Redis at \(settings.address) does not answer")
      }
    }
  }

  /// The socket is connected.
  func opened(_ handler: RedisChannelHandler) {
    guard case .connecting(nil, let handshake) = state else { return handler.abandon() }
    state = .connecting(handler, handshake)
    outbound.clear()
    for step in handshake.steps { outbound.writeCommand(step.command) }
    send(to: handler)
  }

  func received(_ reply: borrowing HiredisReply) {
    switch state {
    case .up: user?.linkReceived(reply)
    case .connecting(let handler?, var handshake):
      let action = handshake.received(reply.value)
      state = .connecting(handler, handshake)
      switch action {
      case .wait: break
      case .ready(let greeting): greeted(handler, greeting)
      case .fail(let reason): fail(reason)
      }
    case .connecting, .waiting, .closed: break
    }
  }

  func readComplete() {
    user?.linkReadAll()
    context.executor.drain()
  }

  private func greeted(_ handler: RedisChannelHandler, _ greeting: RedisGreeting) {
    attemptLimit?.cancel()
    state = .up(handler)
    let before = outage
    outage = nil
    backoff.succeeded()
    counters.connected()
    let refusal = user?.linkIsUp(greeting)
    guard let before, refusal == nil else { return }
    let message: Logger.Message = carriesRecords ? "Redis is back" : "the subscription to Redis is back"
    logger.notice(message, metadata: ["after": "\(before.reason)"])
  }

  /// Gives the connection up, or the attempt to make one, and tries again later.
  func fail(_ reason: String) {
    let before = state
    switch before {
    case .closed, .waiting: return
    case .connecting, .up: break
    }
    if outage == nil {
      outage = (BootInstant(nanoseconds: bootTimeNanoseconds()), reason)
      logger.warning("no connection to Redis", metadata: ["reason": "\(reason)"])
    } else {
      outage?.reason = reason
    }
    state = .waiting
    attemptLimit?.cancel()
    let span = backoff.failed(fraction: Double.random(in: 0..<1))
    retry = context.loop.scheduleTask(in: .milliseconds(span.count)) {
      self.connect()
    }
    drop(before, reason)
  }

  private func drop(_ state: State, _ reason: String) {
    outbound.clear()
    counters.disconnected(reason)
    switch state {
    case .up(let handler), .connecting(let handler?, _): handler.abandon()
    case .connecting(nil, _), .waiting, .closed: break
    }
    user?.linkIsDown(reason)
    context.executor.drain()
  }

  /// The cause in words, without the names of functions that it came through.
  static func text(of error: any Error) -> String {
    if let error = error as? NIOConnectionError {
      guard let first = error.connectionErrors.first else { return "its name is not known" }
      return text(of: first.error)
    }
    return plainText(of: error)
  }
}

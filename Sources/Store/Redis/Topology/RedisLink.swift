import Idempotency
import Logging
import NIOCore
import Platform
import TLS
import Wire

/// One connection to Redis, established, initialised by a handshake, and again after a loss. Confined to its loop.
final class RedisLink: @unchecked Sendable {
  private enum State {
    /// Not started, or closed for good.
    case closed
    /// The socket is being connected, or the handshake's replies are awaited.
    case connecting(RedisChannelHandler?, RedisHandshake)
    case up(RedisChannelHandler)
    /// The pause before the next attempt.
    case waiting
  }

  /// The maximum duration of an attempt. A frozen Redis accepts connections, and each attempt leaves one open there.
  static let attemptSpan: Milliseconds = 2000
  /// The capacity above which the output buffer is not reused.
  private static let keptCapacity = 1 << 18

  let context: EventLoopContext
  let settings: RedisEndpointSettings
  let counters: RedisCounters
  let monitor: StoreMonitor
  private let purpose: RedisPurpose
  private let lookups: HostLookups
  let logger: Logger
  /// The server's address; `nil` until it is known.
  private(set) var address: ServerAddress? {
    didSet { presence = address.flatMap { presences?.of($0) } }
  }
  let presences: RedisPresences?
  /// The state of the server as the process last heard of it.
  private(set) var presence: RedisPresence?
  /// The time at which bytes last arrived on this connection, or on an earlier one.
  private(set) var readAt = BootInstant(nanoseconds: 0)
  private(set) var (readBytes, writtenBytes) = (0, 0)
  /// The beginning of the last attempt if that has failed.
  private(set) var failedAttemptAt: BootInstant?
  /// The number of attempts, by which a late channel of an earlier one is recognised.
  private var attempt = 0
  private var hasStood = false
  private var state = State.closed
  /// The largest bound of a pause before reconnecting, for operators who have repaired Redis.
  static let maxPause: Milliseconds = 2000
  /// The bounds of these pauses, in milliseconds. The first is a few times what a connection to another zone takes.
  private var backoff = Backoff(first: 20, max: maxPause.count)
  private var attemptLimit: Scheduled<Void>?
  private var attemptDeadline = LateReplyDeadline()
  private(set) var attemptedAt: BootInstant?
  private var retry: Scheduled<Void>?
  private var outbound = ByteBufferAllocator().buffer(capacity: 4096)
  private var spare = ByteBufferAllocator().buffer(capacity: 4096)
  private var isFlushDue = false
  /// The user, until the link is closed. Not weak, since the reference counts of such an object are slow.
  var user: (any RedisLinkUser)?
  /// The beginning of the present outage and its reason.
  private(set) var outage: (since: BootInstant, reason: String)?
  /// The connection has ended or cannot be established, to this address for this reason.
  var didFail: (ServerAddress, String) -> Void = { _, _ in }
  var didConnect: () -> Void = {}

  /// - Parameters:
  ///   - address: The server's address; `nil` until `move` names it.
  ///   - isOnly: Whether the counters' state is this link's own.
  ///   - presences: What the process hears of servers; `nil` if this server does not count there.
  init(
    context: EventLoopContext, settings: RedisEndpointSettings, purpose: RedisPurpose,
    address: ServerAddress?, counters: RedisCounters = RedisCounters(), isOnly: Bool = true,
    lookups: HostLookups = .shared, presences: RedisPresences? = nil, logger: Logger
  ) {
    self.lookups = lookups
    self.presences = presences
    presence = address.flatMap { presences?.of($0) }
    self.context = context
    self.settings = settings
    self.purpose = purpose
    self.address = address
    self.logger = logger
    self.counters = counters
    monitor = isOnly ? counters.monitor : StoreMonitor(.connecting)
  }

  var isUp: Bool { handler != nil }

  var handler: RedisChannelHandler? {
    if case .up(let handler) = state { handler } else { nil }
  }

  var isConnecting: Bool {
    if case .connecting = state { true } else { false }
  }

  /// Whether replies wait in the socket.
  var hasUnread: Bool {
    switch state {
    case .up(let handler), .connecting(let handler?, _): handler.hasUnread
    case .connecting(nil, _), .waiting, .closed: false
    }
  }

  /// Whether the outage has lasted for longer than one call may take.
  var isOutageLong: Bool {
    outage.map { BootInstant.now - $0.since >= settings.timeout } ?? false
  }

  func start() {
    guard case .closed = state else { return }
    connect()
  }

  func move(to address: ServerAddress) {
    guard address != self.address else { return }
    self.address = address
    failedAttemptAt = nil
    switch state {
    case .closed: return
    case .up, .connecting:
      // No fault of either server: `didFail` would lay it to the next one.
      let (before, reason) = (state, "the connection moves to \(address)")
      // One Sentinel is left for the next several times a second, while none knows a usable master.
      pause(because: reason, isOutage: purpose != .sentinel)
      drop(before, reason)
    case .waiting: break
    }
    retry?.cancel()
    if case .waiting = state { connect() }
  }

  func aim(at address: ServerAddress) { self.address = address }

  func lacksAddress(because reason: String) {
    if outage != nil { outage?.reason = reason }
  }

  /// Closes the connection for good.
  func close() {
    let before = state
    state = .closed
    attemptLimit?.cancel()
    retry?.cancel()
    drop(before, "Semel is shutting down")
    user = nil
    didFail = { _, _ in }
    didConnect = {}
  }

  /// Appends commands, which are written together at the end of the loop's turn.
  func append(_ write: (inout ByteBuffer) -> Void) {
    context.loop.assertInEventLoop()
    write(&outbound)
    guard !isFlushDue else { return }
    isFlushDue = true
    context.loop.execute { self.flush() }
  }

  private func flush() {
    if case .up = state { user?.linkWillWrite() }
    isFlushDue = false
    guard case .up(let handler) = state, outbound.readableBytes > 0 else { return }
    // A write that fails ends the link from within, and its commands count as written.
    user?.linkWrote()
    send(to: handler)
  }

  /// Writes what was appended. A failing write may bring replies that append more.
  private func send(to handler: RedisChannelHandler) {
    var leaving = spare
    spare = ByteBuffer()
    swap(&leaving, &outbound)
    writtenBytes += leaving.readableBytes
    handler.write(leaving)
    leaving.clear()
    if leaving.capacity <= Self.keptCapacity { spare = leaving }
  }
}

extension RedisLink {
  private func connect() {
    guard let address else {
      state = .waiting
      outage =
        outage ?? (BootInstant.now, "no Sentinel has named the master yet")
      return
    }
    do throws(RedisLogin.Fault) {
      state = .connecting(nil, try RedisHandshake(settings, for: purpose))
    } catch {
      // The fault is this node's own, so no other server is looked for.
      pause(because: error.reason)
      return drop(.waiting, error.reason)
    }
    attempt += 1
    attemptedAt = BootInstant.now
    attemptDeadline = LateReplyDeadline()
    limitAttempt(to: Self.attemptSpan)
    connect(to: address)
  }

  private func connect(to address: ServerAddress) {
    let attempt = attempt
    let place: OutgoingConnection.Place =
      switch address {
      case .tcp(let host, let port): .tcp(host: host, port: port)
      case .unix(let path): .unix(path: path)
      }
    var connection = OutgoingConnection(to: place, timeout: .milliseconds(Self.attemptSpan.count)) {
      try self.addHandlers(to: $0, at: address, attempt)
    }
    connection.lookups = lookups
    let connected = context.sockets.connect(connection, on: context.loop)
    connected.whenFailure { error in
      guard case .connecting(nil, _) = self.state, attempt == self.attempt else { return }
      self.fail("\(self.peer) cannot be reached: \(plainText(of: error))")
    }
  }

  private var peer: String { "\(purpose.peer) at \(address.map { "\($0)" } ?? "an unknown address")" }

  /// - Parameter attempt: The attempt that the channel was made for, which need not be the present one.
  private func addHandlers(
    to channel: any Channel, at address: ServerAddress, _ attempt: Int
  ) throws {
    let handlers = channel.pipeline.syncOperations
    if let tls = settings.login.tls {
      renew(tls)
      try handlers.addHandler(tls.handler(for: address.host))
    }
    try handlers.addHandler(
      RedisChannelHandler(link: self, attempt: attempt, isPlain: settings.login.tls == nil))
  }

  private func renew(_ tls: ClientTLS) {
    let place: Logger.Metadata = ["certificate": "\(tls.files.certificate ?? tls.files.ca ?? "")"]
    do throws(TLSFault) {
      if try tls.renewIfChanged() { logger.info("a certificate was read again", metadata: place) }
    } catch {
      logger.error(
        "a certificate could not be read again; the one before stays in use",
        metadata: place.merging(["error": "\(error)"]) { _, new in new })
    }
  }

  private func limitAttempt(to span: Milliseconds) {
    let due = BootInstant.now + span
    attemptLimit = context.loop.scheduleTask(in: .milliseconds(span.count)) { [self] in
      let now = BootInstant.now
      switch attemptDeadline.verdict(due: due, now: now, hasUnread: hasUnread) {
      case .readUntil(let later): limitAttempt(to: later - now)
      case .over: broke("\(peer) does not reply", .silence)
      }
    }
  }

  func opened(_ handler: RedisChannelHandler) {
    guard case .connecting(nil, let handshake) = state, handler.attempt == attempt else {
      return handler.abandon()
    }
    state = .connecting(handler, handshake)
    outbound.clear()
    for step in handshake.steps { outbound.writeCommand(step.command) }
    send(to: handler)
  }

  func arrived(_ count: Int) {
    readAt = .now
    readBytes += count
    presence?.heard(at: readAt)
  }

  func received(_ reply: borrowing HiredisReply) {
    switch state {
    case .up: user?.linkReceived(reply)
    case .connecting(let handler?, var handshake):
      let action = handshake.received(reply.value)
      state = .connecting(handler, handshake)
      switch action {
      case .wait: break
      case .ready(let result): didFinishHandshake(handler, result)
      case .fail(let reason): fail(reason)
      }
    case .connecting, .waiting, .closed: break
    }
  }

  func readComplete() {
    user?.linkReadAll()
    context.executor.drain()
  }

  private func didFinishHandshake(_ handler: RedisChannelHandler, _ result: RedisHandshakeResult) {
    attemptLimit?.cancel()
    invariant(outbound.readableBytes == 0, "a connection begins with commands of an earlier one")
    state = .up(handler)
    let before = outage
    outage = nil
    failedAttemptAt = nil
    backoff.reset()
    counters.connected(isAgain: hasStood)
    let isBack = hasStood
    hasStood = true
    didConnect()
    let refusal = user?.linkIsUp(result, isBack: isBack)
    guard let before, refusal == nil else { return }
    let message: Logger.Message =
      switch purpose {
      case .records: "Redis is back"
      case .subscriptions: "the subscription to Redis is back"
      case .sentinel: "Sentinel is back"
      case .responses: "Redis for responses is back"
      }
    logger.notice(message, metadata: ["after": "\(before.reason)"])
  }

  func fail(_ reason: String) {
    let before = state
    switch before {
    case .closed, .waiting: return
    case .connecting: failedAttemptAt = attemptedAt
    case .up: break
    }
    // The loss of a connection for responses is that of what was on its way there.
    pause(because: reason, isOutage: purpose != .responses)
    if let address { didFail(address, reason) }
    drop(before, reason)
  }

  /// Gives up a connection that has ended in this way, and asks about TLS if no reply has ever come.
  func broke(_ reason: String, _ end: RedisLogin.EarlyEnd) {
    guard case .connecting(_?, let handshake) = state, !handshake.hasReply, !hasStood else {
      return fail(reason)
    }
    let hasURL = purpose != .sentinel && settings.topology.isStandalone
    fail(reason + settings.login.tlsQuestion(after: end, hasURL: hasURL))
  }

  private func pause(because reason: String, isOutage: Bool = true) {
    if outage == nil, isOutage {
      outage = (BootInstant.now, reason)
      logger.warning("no connection to \(purpose.peer)", metadata: ["reason": "\(reason)"])
    } else {
      outage?.reason = reason
    }
    state = .waiting
    attemptLimit?.cancel()
    // At random, so that many nodes do not reconnect at the same moment.
    let span = Int64.random(in: 1..<backoff.next())
    retry = context.loop.scheduleTask(in: .milliseconds(span)) { self.connect() }
  }

  private func drop(_ state: State, _ reason: String) {
    outbound.clear()
    monitor.fails(reason)
    switch state {
    case .up(let handler):
      counters.disconnected()
      handler.abandon()
    case .connecting(let handler?, _): handler.abandon()
    case .connecting(nil, _), .waiting, .closed: break
    }
    user?.linkIsDown(reason)
    context.executor.drain()
  }
}

/// The user of a link, which is called on its loop alone.
protocol RedisLinkUser: AnyObject {
  /// Returns the reason for which this Redis is refused, if it is.
  ///
  /// - Parameter isBack: Whether there was a connection before.
  func linkIsUp(_ result: RedisHandshakeResult, isBack: Bool) -> String?
  func linkReceived(_ reply: borrowing HiredisReply)
  func linkReadAll()
  /// All commands that were appended so far are about to be written. One that this call appends is the last of them.
  func linkWillWrite()
  func linkWrote()
  func linkIsDown(_ reason: String)
}

extension RedisLinkUser {
  func linkReadAll() {}
  func linkWillWrite() {}
  func linkWrote() {}
}

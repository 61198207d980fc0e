import Idempotency
import NIOCore
import Platform
import TLS
import Wire

/// The connections of one backend on one event loop: those in use, those kept for the next exchange, and the exchanges
/// that wait for one.
///
/// An HTTP/1.1 connection carries one exchange at a time. An HTTP/2 connection is shared by the requests of protected
/// routes, or by all others, and another is made only when the existing ones take no more exchanges. Confined to its
/// loop.
final class ConnectionPool: @unchecked Sendable {
  private static let ending = "the transport is shut down"
  /// The time in which a client has to move 64 KiB in order to keep its connection while others wait for one.
  private static let maxHeldUp = TimeAmount.seconds(5)

  let settings: UpstreamSettings
  let versions: HTTPVersions
  /// The TLS client; `nil` if the backend is not `https`, and before the first connection.
  private var tls: ClientTLS?
  /// The generation of the TLS files that the pool has seen.
  private var generation: Int?
  let upstream: HTTPUpstream
  private let limit: Int
  private var shares: ConnectionShares
  /// The number of connections, including those that are being established.
  private var count = 0 {
    didSet { invariant(count >= 0, "a connection is counted out twice") }
  }
  /// The number of connections that are being established for protected requests, and for all others.
  private var connecting = ByProtection()
  /// The number of those, and of HTTP/2 connections.
  private var made = ByProtection()
  /// Whether the next connection is expected to carry many exchanges.
  private var isSharing: Bool
  private var connections: [ObjectIdentifier: any PooledConnection] = [:]
  /// The idle HTTP/1.1 connections. The one used last is at the end and is used first, so that superfluous ones age.
  private var idle: [HTTP1Connection] = []
  /// The HTTP/2 connections that take exchanges. The first one with room is used, for the same reason.
  private var shared: [HTTP2Connection] = []
  private var waiting = WaitingExchanges()
  /// The exchanges without protection that their clients hold up, or have held up.
  private var heldUp: [ObjectIdentifier: HTTPExchange] = [:]
  private var isStartingNext = false
  /// The timer that runs while connections are unused, and its end.
  private var timer: (token: LoopTimers.Token, end: NIODeadline)?
  private var isShutDown = false
  /// Whether the configuration no longer has these settings, so that no connection is kept for another exchange.
  private(set) var isRetired = false

  /// Whether an unused connection is kept.
  private var keepsIdle: Bool { settings.idleTimeout > 0 && !isShutDown && !isRetired }

  init(settings: UpstreamSettings, versions: HTTPVersions, loops: Int, upstream: HTTPUpstream) {
    self.settings = settings
    self.versions = versions
    self.upstream = upstream
    limit = max(1, settings.maxConnections / max(1, loops))
    shares = ConnectionShares(of: limit)
    isSharing = versions != .http1
  }

  /// Whether no exchange is in progress.
  var isIdle: Bool { count == idle.count + shared.count { $0.isResting } && waiting.isEmpty }

  /// Gives the exchange a connection: one that is idle and quiet, a new one, or the next that becomes free.
  ///
  /// - Parameter isFresh: Whether the connection must not be an idle HTTP/1.1 connection. Shared connections are used
  ///   in any case.
  func start(_ exchange: HTTPExchange, isFresh: Bool = false) {
    upstream.context.loop.assertInEventLoop()
    guard !isShutDown else { return exchange.fail(Self.ending) }
    retireOutdated()
    guard mayUseFree(exchange) else { return enqueue(exchange) }
    while !isFresh, let connection = idle.popLast() {
      switch connection.hasAged(.now()) || !connection.mayCarry(exchange) ? .ended : connection.readState {
      case .quiet: return exchange.run(on: connection)
      case .unread: settle(connection)
      case .ended: connection.closeUnusable()
      }
    }
    if !exchange.request.bindsConnection, let connection = shared.first(where: { $0.hasRoom(for: exchange) })
    {
      return open(exchange, on: connection)
    }
    guard mayConnect(for: exchange) else { return enqueue(exchange) }
    connect(for: exchange)
  }

  /// Whether the exchange may take up a connection that is free. Streams of HTTP/2 share theirs.
  private func mayUseFree(_ exchange: HTTPExchange) -> Bool {
    isSharing || shares.leaveOne(to: exchange.request)
  }

  /// Whether the exchange's caller has all connections that it may take up. Its requests wait for one another.
  private func isOverdrawn(_ exchange: HTTPExchange) -> Bool {
    exchange.request.isProtected && !mayUseFree(exchange)
  }

  private func open(_ exchange: HTTPExchange, on connection: HTTP2Connection) {
    if connection.takesHead(of: exchange) { connection.open(exchange) } else { refuseHead(of: exchange) }
  }

  /// Handles an exchange whose head is larger than the backend accepts over HTTP/2.
  private func refuseHead(of exchange: HTTPExchange) {
    invariant(versions != .http1, "a connection of HTTP/1.1 refuses a head by the rules of HTTP/2")
    guard versions == .http2 else { return upstream.startOverHTTP1(exchange) }
    exchange.fail(.headTooLarge("the request's head is larger than the backend accepts"))
  }

  /// Handles a request that takes up a connection, or no longer does.
  func changeCount(of request: UpstreamRequest, by change: Int) {
    guard change != 0 else { return }
    shares.change(request, by: change)
  }

  private func enqueue(_ exchange: HTTPExchange) {
    waiting.append(exchange)
    exchange.awaitConnection()
    if mayMakeRoom(for: exchange), isBusy(for: exchange) { makeRoom() }
  }

  /// Whether the end of an exchange without protection may let this one begin. Where connections are shared, its stream
  /// leaves a place to others without protection alone.
  private func mayMakeRoom(for exchange: HTTPExchange) -> Bool {
    !exchange.request.isProtected || !isSharing && !isOverdrawn(exchange)
  }

  func addHeldUp(_ exchange: HTTPExchange) {
    invariant(!exchange.request.isProtected, "a protected request is to give way to others")
    heldUp[ObjectIdentifier(exchange)] = exchange
  }

  func removeHeldUp(_ exchange: HTTPExchange) { heldUp.removeValue(forKey: ObjectIdentifier(exchange)) }

  /// Ends the exchange that its client holds up most, if that is slow enough. Else few clients that hardly send, or
  /// hardly read, could keep all connections for themselves.
  private func makeRoom() {
    let limit = NIODeadline.now() - Self.maxHeldUp
    let slow = heldUp.values.filter { $0.isHeldUp && $0.pace.movedAt < limit }
    slow.min { $0.pace.movedAt < $1.pace.movedAt }?.fail(
      .requestBody("a slow client, and no connection was free"))
  }

  /// Lets go of an exchange that no longer waits: no connection may become free for hours.
  func waitEnded() { waiting.dropEnded() }

  /// Whether an exchange waits because others have the connections, and not for the backend.
  func isBusy(for exchange: HTTPExchange) -> Bool { !connections.isEmpty && !hasShare(for: exchange) }

  /// Whether the limit leaves a connection to the exchange.
  private func hasShare(for exchange: HTTPExchange) -> Bool {
    let isProtected = exchange.request.isProtected
    // Neither kind waits until the other has let go of all.
    if isSharing, !connections.isEmpty, made[isProtected] == 0 { return true }
    guard count < limit else { return false }
    return isSharing
      ? isProtected || made[false] < shares.maxUnprotected : shares.leaveOne(to: exchange.request)
  }

  /// Whether a new connection may be made for the exchange. One that is being established may have room for all, and so
  /// may one that is just being read.
  private func mayConnect(for exchange: HTTPExchange) -> Bool {
    guard hasShare(for: exchange) else { return false }
    if exchange.request.bindsConnection { return true }
    let isMade = isSharing && connecting[exchange.request.isProtected] > 0
    return !isMade && !shared.contains { $0.holdsBack(exchange) }
  }

  /// Waits until the bytes that have arrived are read, and then releases the connection.
  private func settle(_ connection: HTTP1Connection) {
    connection.whenQuiet { isQuiet in
      if isQuiet { self.release(connection) }
    }
  }

  /// The TLS client for a new connection; `nil` if the backend is not `https`.
  func client() throws(TLSFault) -> ClientTLS? {
    guard let files = settings.tls else { return nil }
    if let tls { return tls }
    let tls = try upstream.tls.client(of: files, protocols: versions.protocols)
    generation = tls.generation
    self.tls = tls
    return tls
  }

  /// Whether the connection was made with TLS files that have been replaced since.
  func isOutdated(_ connection: any PooledConnection) -> Bool {
    tls.map { $0.generation != connection.generation } ?? false
  }

  /// Takes no more requests on the connections that replaced TLS files have made outdated.
  private func retireOutdated() {
    guard let current = tls?.generation, current != generation else { return }
    generation = current
    closeIdle(where: isOutdated)
    for connection in shared where isOutdated(connection) { connection.leave() }
  }

  private func connect(for exchange: HTTPExchange) {
    let isProtected = exchange.request.isProtected
    count += 1
    connecting[isProtected] += 1
    made[isProtected] += 1
    invariant(connecting[isProtected] <= made[isProtected], "more connections are being made than were begun")
    invariant(made[true] + made[false] <= count, "a pool counts fewer connections than of the two kinds")
    upstream.counters.connects += 1
    exchange.connect()
    Connector.connect(for: self).whenComplete { result in
      self.connecting[isProtected] -= 1
      switch result {
      case .success(.exclusive(let connection)):
        self.made[isProtected] -= 1
        self.connected(connection, for: exchange)
      case .success(.shared(let connection)):
        connection.isProtected = isProtected
        self.connected(connection, for: exchange)
      case .failure(let error):
        self.count -= 1
        self.made[isProtected] -= 1
        exchange.connectFailed(Connector.reason(error))
      }
      self.startNext()
      self.upstream.context.executor.drain()
    }
  }

  private func connected(_ connection: HTTP1Connection, for exchange: HTTPExchange) {
    invariant(connection.isFree && !connection.wasUsed, "a connection that was just made carries an exchange")
    isSharing = false
    guard isKept(connection, for: exchange) else { return }
    connection.whenQuiet { isQuiet in
      guard isQuiet else { return exchange.connectFailed("the backend sent bytes before the first request") }
      guard exchange.isConnecting else { return self.release(connection) }
      exchange.run(on: connection)
    }
  }

  private func connected(_ connection: HTTP2Connection, for exchange: HTTPExchange) {
    isSharing = true
    guard isKept(connection, for: exchange) else { return }
    if exchange.isConnecting, !connection.takesHead(of: exchange) {
      shared.append(connection)
      refuseHead(of: exchange)
      return hasRoom(connection)
    }
    if exchange.isConnecting, exchange.request.bindsConnection {
      guard connection.takesBody(of: exchange) else {
        connection.close()
        return exchange.connectFailed("the backend takes no body on a new connection")
      }
      connection.reserve()
      return connection.open(exchange)
    }
    shared.append(connection)
    if exchange.isConnecting {
      if connection.takesBody(of: exchange) { connection.open(exchange) } else { enqueue(exchange) }
    }
    hasRoom(connection)
  }

  private func isKept(_ connection: any PooledConnection, for exchange: HTTPExchange) -> Bool {
    guard connection.isOpen else {
      uncount(connection)
      exchange.connectFailed("the backend closed the connection at once")
      return false
    }
    connections[ObjectIdentifier(connection)] = connection
    invariant(connections.count <= count, "a pool keeps a connection that it does not count")
    upstream.didConnect(to: settings.name)
    guard !isShutDown else {
      connection.close()
      if exchange.isConnecting { exchange.fail(Self.ending) }
      return false
    }
    return true
  }

  /// Takes back a free connection: the next exchange in the queue uses it, or it is kept for a while.
  func release(_ connection: HTTP1Connection) {
    invariant(connection.isFree, "a connection is given back while it carries an exchange")
    // Its end makes room for another.
    guard !isOutdated(connection) else { return connection.close() }
    if let first = firstWaiting(where: mayUseFree) {
      guard connection.mayCarry(first) else { return connection.close() }
      switch connection.readState {
      case .quiet: if let next = nextWaiting(where: mayUseFree) { return next.run(on: connection) }
      case .unread: return settle(connection)
      case .ended: return connection.closeUnusable()
      }
    }
    guard keepsIdle, connection.isOpen else { return connection.close() }
    connection.rest()
    idle.append(connection)
    invariant(idle.count + shared.count <= connections.count, "a connection is kept for two exchanges")
    startTimer(until: connection.restsUntil)
  }

  /// Handles a shared connection that takes more exchanges than before, or has none.
  func hasRoom(_ connection: HTTP2Connection) {
    guard !isOutdated(connection) else { return connection.leave() }
    while let next = nextWaiting(where: { !$0.request.bindsConnection && connection.hasRoom(for: $0) }) {
      open(next, on: connection)
    }
    guard connection.isResting else { return }
    guard keepsIdle else { return connection.close() }
    startTimer(until: connection.restsUntil)
  }

  /// Handles a shared connection that takes no more exchanges. It closes when its last one ends.
  func left(_ connection: HTTP2Connection) {
    shared.removeAll { $0 === connection }
    startNext()
  }

  /// Handles the end of a connection.
  func closed(_ connection: any PooledConnection) {
    guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
    uncount(connection)
    idle.removeAll { $0 === connection }
    shared.removeAll { $0 === connection }
    invariant(idle.count + shared.count <= connections.count, "a connection that has ended is still offered")
    startNext()
  }

  private func uncount(_ connection: any PooledConnection) {
    count -= 1
    if let shared = connection as? HTTP2Connection { made[shared.isProtected] -= 1 }
  }

  /// Closes idle HTTP/1.1 connections. They leave the list first: the end of one runs tasks, which may begin requests.
  private func closeIdle(where mustClose: (HTTP1Connection) -> Bool) {
    let closing = idle.filter(mustClose)
    idle.removeAll(where: mustClose)
    for connection in closing { connection.close() }
  }

  /// Retires the pool, which closes its unused connections, or takes it into use again.
  func setRetired(_ isRetired: Bool) {
    self.isRetired = isRetired
    guard isRetired else { return }
    closeIdle(where: { _ in true })
    for connection in shared where connection.isResting { connection.leave() }
  }

  func shutdown() {
    isShutDown = true
    if let timer { upstream.context.timers.stop(timer.token) }
    timer = nil
    for exchange in waiting.removeAll() { exchange.fail(Self.ending) }
    for connection in Array(connections.values) { connection.close() }
  }

  /// Makes connections for the exchanges that wait. One that fails at once ends within this: its place is taken by the
  /// loop and not by a further call, of which there could be as many as exchanges.
  private func startNext() {
    guard !isStartingNext else { return }
    isStartingNext = true
    defer { isStartingNext = false }
    while let next = nextWaiting(where: mayConnect) { connect(for: next) }
  }

  /// The exchange that has waited longest and may begin. Of each kind only the first one is considered whose caller may
  /// take up one more.
  private func firstWaiting(where mayBegin: (HTTPExchange) -> Bool) -> HTTPExchange? {
    let (first, second) = waiting.firsts(skipping: isOverdrawn)
    if let first, mayBegin(first) { return first }
    if let second, mayBegin(second) { return second }
    return nil
  }

  /// Removes and returns the exchange that has waited longest and may begin.
  private func nextWaiting(where mayBegin: (HTTPExchange) -> Bool) -> HTTPExchange? {
    guard let exchange = firstWaiting(where: mayBegin) else { return nil }
    waiting.remove(exchange)
    return exchange
  }

  /// Starts the one timer that serves all connections, unless it ends early enough.
  private func startTimer(until end: NIODeadline) {
    if let timer {
      guard end < timer.end else { return }
      upstream.context.timers.stop(timer.token)
    }
    let span = Milliseconds(end - .now()).count
    timer = (upstream.context.timers.start(milliseconds: span) { [weak self] in self?.closeAged() }, end)
  }

  /// Closes connections whose idle time is over, and sets the timer for the next one.
  private func closeAged() {
    timer = nil
    let now = NIODeadline.now()
    let resting: [any PooledConnection] = idle + shared.filter { $0.isResting }
    let next = resting.lazy.map(\.restsUntil).filter { $0 > now }.min()
    if let next { startTimer(until: next) }
    closeIdle(where: { $0.hasAged(now) })
    for connection in shared where connection.isResting && connection.hasAged(now) { connection.close() }
  }
}

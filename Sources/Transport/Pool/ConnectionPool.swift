import Idempotency
import NIOCore
import Platform
import TLS

/// The connections of one backend on one event loop: those in use, those kept for the next exchange, and the exchanges
/// that wait for one.
///
/// An HTTP/1.1 connection carries one exchange at a time. An HTTP/2 connection is shared, and another is made only when
/// the existing ones take no more exchanges. Confined to its loop.
final class ConnectionPool: @unchecked Sendable {
  private static let ending = "the transport is shut down"

  let settings: UpstreamSettings
  let versions: HTTPVersions
  /// The TLS client; `nil` if the backend is not `https`, and before the first connection.
  private var tls: ClientTLS?
  /// The generation of the TLS files that the pool has seen.
  private var generation: Int?
  let upstream: HTTPUpstream
  private let limit: Int
  /// The number of HTTP/1.1 connections that requests of no protected route may take up together. They leave a quarter
  /// to the others: a tunnel or an event stream keeps its connection for as long as its client wants.
  private let maxUnprotected: Int
  /// The number of exchanges without protection that are connecting or running.
  private var unprotectedCount = 0
  /// The number of connections, including those that are being established.
  private var count = 0
  /// The number of connections that are being established.
  private var connecting = 0
  /// Whether the next connection is expected to carry many exchanges.
  private var isSharing: Bool
  private var connections: [ObjectIdentifier: any PooledConnection] = [:]
  /// The idle HTTP/1.1 connections. The one used last is at the end and is used first, so that superfluous ones age.
  private var idle: [HTTP1Connection] = []
  /// The HTTP/2 connections that take exchanges. The first one with room is used, for the same reason.
  private var shared: [HTTP2Connection] = []
  private var waiting = WaitingExchanges()
  private var isStartingNext = false
  private var timer: LoopTimers.Token?
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
    // Of a single connection nothing can be left.
    maxUnprotected = limit > 1 ? limit - max(1, limit / 4) : 1
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
    guard exchange.request.isProtected || admitsUnprotected else { return enqueue(exchange) }
    while !isFresh, let connection = idle.popLast() {
      switch connection.hasAged(.now()) ? .ended : connection.readState {
      case .quiet: return exchange.run(on: connection)
      case .unread: settle(connection)
      case .ended: connection.closeUnusable()
      }
    }
    if !exchange.request.bindsConnection, let connection = shared.first(where: { $0.hasRoom(for: exchange) })
    {
      return connection.open(exchange)
    }
    guard mayConnect(for: exchange) else { return enqueue(exchange) }
    connect(for: exchange)
  }

  /// Whether an exchange of no protected route may take up a connection now. Streams of HTTP/2 share theirs.
  private var admitsUnprotected: Bool { unprotectedCount < maxUnprotected || isSharing }

  /// Handles exchanges without protection that take up a connection, or no longer do.
  func changeUnprotectedCount(by change: Int) {
    guard change != 0 else { return }
    unprotectedCount += change
  }

  private func enqueue(_ exchange: HTTPExchange) {
    waiting.append(exchange)
    exchange.awaitConnection()
  }

  /// Lets go of an exchange that no longer waits: no connection may become free for hours.
  func waitEnded() { waiting.dropEnded() }

  /// Whether an exchange waits because others have the connections, and not for the backend.
  func isBusy(for exchange: HTTPExchange) -> Bool {
    !connections.isEmpty && (count >= limit || !exchange.request.isProtected && !admitsUnprotected)
  }

  /// Whether a new connection may be made for the exchange. One that is being established may have room for all, and so
  /// may one that is just being read.
  private func mayConnect(for exchange: HTTPExchange) -> Bool {
    guard count < limit else { return false }
    if exchange.request.bindsConnection { return true }
    return !(isSharing && connecting > 0) && !shared.contains { $0.holdsBack(exchange) }
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
    count += 1
    connecting += 1
    upstream.counters.connects += 1
    exchange.connect()
    Connector.connect(for: self).whenComplete { result in
      self.connecting -= 1
      switch result {
      case .success(.exclusive(let connection)): self.connected(connection, for: exchange)
      case .success(.shared(let connection)): self.connected(connection, for: exchange)
      case .failure(let error):
        self.count -= 1
        exchange.connectFailed(Connector.reason(error))
      }
      self.startNext()
      self.upstream.context.executor.drain()
    }
  }

  private func connected(_ connection: HTTP1Connection, for exchange: HTTPExchange) {
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
      count -= 1
      exchange.connectFailed("the backend closed the connection at once")
      return false
    }
    connections[ObjectIdentifier(connection)] = connection
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
    // Its end makes room for another.
    guard !isOutdated(connection) else { return connection.close() }
    if firstWaiting() != nil {
      switch connection.readState {
      case .quiet: if let next = nextWaiting() { return next.run(on: connection) }
      case .unread: return settle(connection)
      case .ended: return connection.closeUnusable()
      }
    }
    guard keepsIdle, connection.isOpen else { return connection.close() }
    connection.rest()
    idle.append(connection)
    if timer == nil { startTimer(settings.idleTimeout) }
  }

  /// Handles a shared connection that takes more exchanges than before, or has none.
  func hasRoom(_ connection: HTTP2Connection) {
    guard !isOutdated(connection) else { return connection.leave() }
    while let next = firstWaiting(), !next.request.bindsConnection, connection.hasRoom(for: next) {
      waiting.removeFirst(next)
      connection.open(next)
    }
    guard connection.isResting else { return }
    guard keepsIdle else { return connection.close() }
    if timer == nil { startTimer(settings.idleTimeout) }
  }

  /// Handles a shared connection that takes no more exchanges. It closes when its last one ends.
  func left(_ connection: HTTP2Connection) {
    shared.removeAll { $0 === connection }
    startNext()
  }

  /// Handles the end of a connection.
  func closed(_ connection: any PooledConnection) {
    guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
    count -= 1
    idle.removeAll { $0 === connection }
    shared.removeAll { $0 === connection }
    startNext()
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
    if let timer { upstream.context.timers.stop(timer) }
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
    while let next = firstWaiting(), mayConnect(for: next) {
      waiting.removeFirst(next)
      connect(for: next)
    }
  }

  /// The first exchange in the queue that still waits and may take up a connection.
  private func firstWaiting() -> HTTPExchange? { waiting.first(admitsUnprotected: admitsUnprotected) }

  /// Removes and returns the first exchange in the queue that still waits and may take up a connection.
  private func nextWaiting() -> HTTPExchange? {
    guard let exchange = firstWaiting() else { return nil }
    waiting.removeFirst(exchange)
    return exchange
  }

  private func startTimer(_ span: Milliseconds) {
    timer = upstream.context.timers.start(milliseconds: span.count) { [weak self] in self?.closeAged() }
  }

  /// Closes connections whose idle time is over. One timer serves all: it is set for the oldest that is left.
  private func closeAged() {
    timer = nil
    let now = NIODeadline.now()
    let aged: [any PooledConnection] =
      idle.prefix { $0.hasAged(now) } + shared.filter { $0.isResting && $0.hasAged(now) }
    for connection in aged { connection.close() }
    let left = [idle.first?.timeLeft(now)] + shared.filter { $0.isResting }.map { $0.timeLeft(now) }
    if let next = left.compactMap(\.self).min() { startTimer(next) }
  }
}

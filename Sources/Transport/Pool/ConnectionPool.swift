import Idempotency
import Loop
import NIOCore

/// The connections of one backend on one event loop: those at work, those kept for the next, and who waits for one.
///
/// A connection of HTTP/1.1 carries one exchange at a time; one of HTTP/2 is shared, and another is made only when
/// those that are there take no more. Confined to its loop.
final class ConnectionPool: @unchecked Sendable {
  private static let ending = "the transport is shut down"

  let settings: UpstreamSettings
  let versions: HTTPVersions
  /// `nil`: the backend is not `https`.
  let tls: BackendTLS?
  let upstream: HTTPUpstream
  private let limit: Int
  /// Every connection, and every attempt to make one.
  private var count = 0
  /// How many are being made.
  private var connecting = 0
  /// Whether the next connection is expected to carry many exchanges.
  private var isSharing: Bool
  private var connections: [ObjectIdentifier: any PooledConnection] = [:]
  /// Those of HTTP/1.1 that are kept. The one used last stands last and is used first, so that those that are not
  /// needed grow old.
  private var idle: [HTTP1Connection] = []
  /// Those of HTTP/2 that take exchanges. The first that has room is used, for the same reason.
  private var shared: [HTTP2Connection] = []
  private var waiting = CircularBuffer<HTTPExchange>(initialCapacity: 4)
  private var timer: LoopTimers.Token?
  private var isShutDown = false

  init(settings: UpstreamSettings, versions: HTTPVersions, loops: Int, upstream: HTTPUpstream) {
    self.settings = settings
    self.versions = versions
    self.upstream = upstream
    tls = settings.tls.map { BackendTLS($0, of: settings.address, protocols: versions.protocols) }
    limit = max(1, settings.maxConnections / max(1, loops))
    isSharing = versions != .http1
  }

  /// Whether nothing is under way.
  var isIdle: Bool { count == idle.count + shared.count { $0.isResting } && waiting.isEmpty }

  /// Gives the exchange a connection: one that is kept and quiet, a new one, or the next that becomes free.
  ///
  /// - Parameter isFresh: whether it must not be one that was kept. Those that are shared are used all the same.
  func start(_ exchange: HTTPExchange, isFresh: Bool = false) {
    guard !isShutDown else { return exchange.fail(Self.ending) }
    while !isFresh, let connection = idle.popLast() {
      switch connection.hasAged(.now()) ? .ended : connection.standing {
      case .quiet: return exchange.run(on: connection)
      case .unread: settle(connection)
      case .ended: connection.close()
      }
    }
    if !exchange.request.bindsConnection, let connection = shared.first(where: { $0.hasRoom(for: exchange) })
    {
      return connection.open(exchange)
    }
    guard mayConnect(for: exchange) else { return wait(exchange) }
    connect(for: exchange)
  }

  private func wait(_ exchange: HTTPExchange) {
    waiting.append(exchange)
    exchange.wait()
  }

  /// One that is being made may have room for all, and so may one that is just being read.
  private func mayConnect(for exchange: HTTPExchange) -> Bool {
    guard count < limit else { return false }
    if exchange.request.bindsConnection { return true }
    return !(isSharing && connecting > 0) && !shared.contains { $0.holdsBack(exchange) }
  }

  /// Lets what has come of a connection be read, and then keeps it, or gives it to who waits.
  private func settle(_ connection: HTTP1Connection) {
    connection.whenQuiet { isQuiet in
      if isQuiet { self.release(connection) }
    }
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
      guard isQuiet else { return exchange.connectFailed("the backend spoke before it was asked") }
      guard exchange.isConnecting else { return self.release(connection) }
      exchange.run(on: connection)
    }
  }

  private func connected(_ connection: HTTP2Connection, for exchange: HTTPExchange) {
    isSharing = true
    guard isKept(connection, for: exchange) else { return }
    if exchange.isConnecting, exchange.request.bindsConnection {
      connection.reserve()
      return connection.open(exchange)
    }
    shared.append(connection)
    if exchange.isConnecting {
      if connection.takesBody(of: exchange) { connection.open(exchange) } else { wait(exchange) }
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
    guard !isShutDown else {
      connection.close()
      if exchange.isConnecting { exchange.fail(Self.ending) }
      return false
    }
    return true
  }

  /// A connection is free: the next exchange takes it, or it is kept for a while.
  func release(_ connection: HTTP1Connection) {
    if firstWaiting() != nil {
      switch connection.standing {
      case .quiet: if let next = nextWaiting() { return next.run(on: connection) }
      case .unread: return settle(connection)
      // It makes room for another by its end.
      case .ended: return connection.close()
      }
    }
    guard settings.idleTimeout > 0, !isShutDown, connection.isOpen else { return connection.close() }
    connection.rest()
    idle.append(connection)
    if timer == nil { startTimer(settings.idleTimeout) }
  }

  /// A connection that is shared takes more than before, or has nothing to do.
  func hasRoom(_ connection: HTTP2Connection) {
    while let next = firstWaiting(), !next.request.bindsConnection, connection.hasRoom(for: next) {
      waiting.removeFirst()
      connection.open(next)
    }
    guard connection.isResting else { return }
    guard settings.idleTimeout > 0, !isShutDown else { return connection.close() }
    if timer == nil { startTimer(settings.idleTimeout) }
  }

  /// A connection that is shared takes no more exchanges, and goes when it has none.
  func left(_ connection: HTTP2Connection) {
    shared.removeAll { $0 === connection }
    startNext()
  }

  /// A connection is gone.
  func closed(_ connection: any PooledConnection) {
    guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
    count -= 1
    idle.removeAll { $0 === connection }
    shared.removeAll { $0 === connection }
    startNext()
  }

  func shutdown() {
    isShutDown = true
    if let timer { upstream.context.timers.stop(timer) }
    timer = nil
    let waiting = waiting
    self.waiting.removeAll()
    for exchange in waiting { exchange.fail(Self.ending) }
    for connection in Array(connections.values) { connection.close() }
  }

  private func startNext() {
    while let next = firstWaiting(), mayConnect(for: next) {
      waiting.removeFirst()
      connect(for: next)
    }
  }

  /// The first one that still waits.
  private func firstWaiting() -> HTTPExchange? {
    while let exchange = waiting.first {
      if exchange.isWaiting { return exchange }
      waiting.removeFirst()
    }
    return nil
  }

  /// Takes the first one that still waits.
  private func nextWaiting() -> HTTPExchange? {
    guard let exchange = firstWaiting() else { return nil }
    waiting.removeFirst()
    return exchange
  }

  private func startTimer(_ span: Milliseconds) {
    timer = upstream.context.timers.start(milliseconds: span.count) { [weak self] in self?.closeAged() }
  }

  /// One timer for all: it looks again when the oldest that is left has aged.
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

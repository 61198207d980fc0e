import Idempotency
import Loop
import NIOCore

/// The connections of one backend on one event loop: those at work, those kept for the next, and who waits for one.
///
/// A connection of HTTP/1.1 carries one exchange at a time; one of HTTP/2 is shared, and another is made only when
/// those that are there take no more. Confined to its loop.
final class NativePool: @unchecked Sendable {
  private static let ending = "the transport is shut down"

  let settings: UpstreamSettings
  let versions: HTTPVersions
  /// `nil`: the backend is not `https`.
  let tls: BackendTLS?
  let upstream: NativeUpstream
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
  private var waiting = CircularBuffer<NativeExchange>(initialCapacity: 4)
  private var timer: LoopTimers.Token?
  private var isShutDown = false

  init(settings: UpstreamSettings, versions: HTTPVersions, loops: Int, upstream: NativeUpstream) {
    self.settings = settings
    self.versions = versions
    self.upstream = upstream
    tls = settings.tls.map { BackendTLS($0, of: settings.address, protocols: versions.protocols) }
    limit = max(1, settings.maxConnections / max(1, loops))
    isSharing = versions != .http1
  }

  /// Whether nothing is under way.
  var isIdle: Bool { count == idle.count + shared.count { $0.isResting } && waiting.isEmpty }

  /// Gives the exchange a connection: one that is kept, a new one, or the next that becomes free.
  ///
  /// - Parameter isFresh: whether it must not be one that was kept. Those that are shared are used all the same.
  func start(_ exchange: NativeExchange, isFresh: Bool = false) {
    guard !isShutDown else { return exchange.fail(Self.ending) }
    while !isFresh, let connection = idle.popLast() {
      if connection.isUsable, exchange.gate.mayRepeat || connection.isEstablished {
        return exchange.run(on: connection)
      }
      connection.close()
    }
    if let connection = shared.first(where: { $0.hasRoom }) { return connection.open(exchange) }
    guard mayConnect else {
      waiting.append(exchange)
      return exchange.wait()
    }
    connect(for: exchange)
  }

  /// A connection that is being made may have room for all.
  private var mayConnect: Bool { count < limit && !(isSharing && connecting > 0) }

  private func connect(for exchange: NativeExchange) {
    count += 1
    connecting += 1
    upstream.counters.connects += 1
    exchange.connect()
    NativeConnector.connect(for: self).whenComplete { result in
      self.connecting -= 1
      switch result {
      case .success(.exclusive(let connection)): self.connected(connection, for: exchange)
      case .success(.shared(let connection)): self.connected(connection, for: exchange)
      case .failure(let error):
        self.count -= 1
        exchange.connectFailed(NativeConnector.reason(error))
      }
      self.startNext()
      self.upstream.context.executor.drain()
    }
  }

  private func connected(_ connection: HTTP1Connection, for exchange: NativeExchange) {
    isSharing = false
    guard isKept(connection, for: exchange) else { return }
    guard exchange.isConnecting else { return release(connection) }
    exchange.run(on: connection)
  }

  private func connected(_ connection: HTTP2Connection, for exchange: NativeExchange) {
    isSharing = true
    guard isKept(connection, for: exchange) else { return }
    shared.append(connection)
    if exchange.isConnecting { connection.open(exchange) }
    hasRoom(connection)
  }

  private func isKept(_ connection: any PooledConnection, for exchange: NativeExchange) -> Bool {
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
    // One that the backend has just ended makes room for another by its end.
    guard waiting.isEmpty || connection.isEstablished else { return connection.close() }
    if let next = nextWaiting() { return next.run(on: connection) }
    guard settings.idleTimeout > 0, !isShutDown else { return connection.close() }
    connection.rest()
    idle.append(connection)
    if timer == nil { startTimer(settings.idleTimeout) }
  }

  /// A connection that is shared takes more than before, or has nothing to do.
  func hasRoom(_ connection: HTTP2Connection) {
    while !waiting.isEmpty, connection.hasRoom, let next = nextWaiting() { connection.open(next) }
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
    while mayConnect, let next = nextWaiting() { connect(for: next) }
  }

  /// The next one that still waits.
  private func nextWaiting() -> NativeExchange? {
    while let exchange = waiting.popFirst() {
      if exchange.isWaiting { return exchange }
    }
    return nil
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

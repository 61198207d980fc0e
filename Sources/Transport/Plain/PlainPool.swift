import Idempotency
import Loop
import NIOCore

/// The connections of one backend on one event loop: those at work, those kept for the next, and who waits for one.
///
/// Confined to its loop.
final class PlainPool: @unchecked Sendable {
  let settings: UpstreamSettings
  unowned let upstream: PlainUpstream
  private let limit: Int
  /// Every connection, and every attempt to make one.
  private var count = 0
  private var connections: [ObjectIdentifier: PlainConnection] = [:]
  /// The one used last stands last and is used first, so that those that are not needed grow old.
  private var idle: [PlainConnection] = []
  private var waiting = CircularBuffer<PlainExchange>(initialCapacity: 4)
  private var timer: LoopTimers.Token?
  private var isShutDown = false

  init(settings: UpstreamSettings, loops: Int, upstream: PlainUpstream) {
    self.settings = settings
    self.upstream = upstream
    limit = max(1, settings.maxConnections / max(1, loops))
  }

  /// Whether nothing is under way.
  var isIdle: Bool { count == idle.count && waiting.isEmpty }

  /// Gives the exchange a connection: one that is kept, a new one, or the next that becomes free.
  ///
  /// - Parameter isFresh: whether it must not be a used one.
  func start(_ exchange: PlainExchange, isFresh: Bool = false) {
    while !isFresh, let connection = idle.popLast() {
      if connection.isUsable, exchange.gate.mayRepeat || connection.isEstablished {
        return exchange.run(on: connection)
      }
      connection.close()
    }
    guard count < limit else {
      waiting.append(exchange)
      return exchange.wait()
    }
    connect(for: exchange)
  }

  private func connect(for exchange: PlainExchange) {
    count += 1
    upstream.counters.connects += 1
    exchange.connect()
    PlainConnector.connect(to: settings, of: self).whenComplete { result in
      switch result {
      case .success(let connection): self.connected(connection, for: exchange)
      case .failure(let error):
        self.count -= 1
        exchange.connectFailed(PlainConnector.reason(error))
        self.startNext()
      }
      self.upstream.context.executor.drain()
    }
  }

  private func connected(_ connection: PlainConnection, for exchange: PlainExchange) {
    guard connection.isOpen else {
      count -= 1
      exchange.connectFailed("the backend closed the connection at once")
      return startNext()
    }
    connections[ObjectIdentifier(connection)] = connection
    guard !isShutDown else { return connection.close() }
    guard exchange.isConnecting else { return release(connection) }
    exchange.run(on: connection)
  }

  /// A connection is free: the next exchange takes it, or it is kept for a while.
  func release(_ connection: PlainConnection) {
    if let next = nextWaiting() { return next.run(on: connection) }
    guard settings.idleTimeout > 0, !isShutDown else { return connection.close() }
    connection.rest()
    idle.append(connection)
    if timer == nil { startTimer(settings.idleTimeout) }
  }

  /// A connection is gone.
  func closed(_ connection: PlainConnection) {
    guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
    count -= 1
    if let index = idle.firstIndex(where: { $0 === connection }) { idle.remove(at: index) }
    startNext()
  }

  func shutdown() {
    isShutDown = true
    if let timer { upstream.context.timers.stop(timer) }
    timer = nil
    let waiting = waiting
    self.waiting.removeAll()
    for exchange in waiting { exchange.fail("the transport is shut down") }
    for connection in Array(connections.values) { connection.close() }
  }

  private func startNext() {
    guard count < limit, let next = nextWaiting() else { return }
    connect(for: next)
  }

  /// The next one that still waits.
  private func nextWaiting() -> PlainExchange? {
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
    let aged = idle.prefix { $0.hasAged(now) }
    for connection in Array(aged) { connection.close() }
    if let oldest = idle.first { startTimer(oldest.timeLeft(now)) }
  }
}

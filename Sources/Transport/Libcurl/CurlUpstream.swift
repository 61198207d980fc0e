import CCurl
import Idempotency
import Logging
import Loop
import NIOCore

/// The backend's side on libcurl: one multi handle, confined to its event loop.
///
/// A request goes out within `begin`, without leaving the loop. Answers are found by the watcher's thread, which
/// only wakes the loop; all else happens here. A continuation that is resumed while libcurl is at work becomes a job
/// of the loop's executor, run once libcurl has returned.
public final class CurlUpstream: Upstream, @unchecked Sendable {
  let context: EventLoopContext
  private let logger: Logger
  private let loops: Int
  private let watcher: CurlWatcher
  private var tag: CurlWatcher.Tag = 0
  private var multi: MultiHandle?
  private var sockets: SocketSet
  private var pools: [TransferPool] = []
  /// Exchanges whose request is not known to be sent whole; looked through after each turn.
  private var sending: [CurlExchange] = []
  private(set) public var counters = UpstreamCounters()

  /// libcurl's timer has run out, or was set to nothing.
  private var isDue = false
  private(set) var isTurning = false
  private var dueAt: NIODeadline?
  private var timer: (token: LoopTimers.Token, at: NIODeadline)?

  /// - Parameters:
  ///   - context: the event loop that this is confined to; `begin` and `shutdown` are called on it.
  ///   - loops: how many there are; each gets its share of an upstream's `maxConnections`.
  public init(
    context: EventLoopContext, loops: Int, watcher: CurlWatcher, logger: Logger
  ) throws(TransportError) {
    guard let multi = MultiHandle(), let sockets = SocketSet() else { throw TransportError.curl }
    self.context = context
    self.loops = loops
    self.watcher = watcher
    self.logger = logger
    self.multi = consume multi
    self.sockets = consume sockets
    self.multi?.setCallbacks(owner: opaque, socket: curlWants, timer: curlSetsTimer)
    // The watcher holds on to this object until `shutdown`.
    tag = watcher.watch(self.sockets.descriptor) { context.loop.execute { self.drive() } }
  }

  public func begin(_ request: UpstreamRequest) -> CurlExchange {
    context.loop.assertInEventLoop()
    let exchange = CurlExchange(request, upstream: self, pool: pool(for: request.upstream))
    start(exchange)
    turn()
    return exchange
  }

  /// Cuts what is still under way and closes every connection. Exchanges that are used after it fail.
  public func shutdown() {
    context.loop.assertInEventLoop()
    guard multi != nil else { return }
    watcher.unwatch(sockets.descriptor, tag)
    for exchange in pools.flatMap(\.exchanges) { exchange.close() }
    pools.removeAll()
    sending.removeAll()
    multi = nil
    if let timer { context.timers.stop(timer.token) }
    timer = nil
  }
}

extension CurlUpstream {
  private var opaque: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  private func pool(for settings: UpstreamSettings) -> TransferPool {
    for pool in pools where pool.settings == settings { return pool }
    // What a reload has left behind and nobody uses any more goes with the next new one.
    pools.removeAll { $0.isIdle && $0.settings.name == settings.name }
    let pool = TransferPool(settings: settings, loops: loops)
    pools.append(pool)
    multi?.setMaximumConnections(pools.reduce(0) { $0 + $1.limit })
    return pool
  }

  /// Hands the exchange a transfer, or lets it wait for one.
  func start(_ exchange: CurlExchange) {
    guard multi != nil else { return exchange.fail("the transport is shut down") }
    guard let transfer = exchange.pool.take(of: opaque) else { return exchange.wait() }
    exchange.run(on: transfer)
    guard let code = multi?.add(transfer.easy), code == CURLM_OK else {
      return exchange.fail("libcurl took no more transfers")
    }
    sending.append(exchange)
  }

  /// Takes a transfer back, finished or not, and gives it to the next exchange that waits.
  func stop(_ transfer: CurlTransfer, of pool: TransferPool) {
    multi?.remove(transfer.easy)
    pool.give(back: transfer)
    if let next = pool.nextWaiting() { start(next) }
  }

  func countSend() { counters.sends += 1 }

  func logRetry(of name: String, after code: CURLcode, in delay: Milliseconds) {
    counters.retries += 1
    logger.debug(
      "connecting is tried again",
      metadata: [
        "upstream": "\(name)", "reason": "\(String(cString: curl_easy_strerror(code)))",
        "delay_ms": "\(delay.count)",
      ])
  }

  /// Lets libcurl do what is due, until nothing is; then sees what has come of it.
  func turn() {
    precondition(!isTurning, "CurlUpstream: a turn began within a turn")
    isTurning = true
    repeat {
      if isDue {
        isDue = false
        multi?.actOnTimers()
      }
      while let done = multi?.nextDone() {
        let transfer = Unmanaged<CurlTransfer>.fromOpaque(done.owner).takeUnretainedValue()
        transfer.exchange?.end(done.code)
      }
      sending.removeAll { $0.review() }
    } while isDue
    isTurning = false
  }

  /// The watcher saw sockets of this loop ready.
  private func drive() {
    guard multi != nil else { return }
    for index in 0..<sockets.poll() {
      guard let event = sockets.event(at: index) else { continue }
      for exchange in sending where exchange.socket == event.socket { exchange.lookAhead() }
      multi?.act(on: event.socket, ready: event.action)
    }
    turn()
    watcher.rearm(sockets.descriptor, tag)
    context.executor.drain()
  }
}

// What libcurl calls, by way of its callbacks.
extension CurlUpstream {
  func want(_ what: Int32, of socket: Int32, for exchange: CurlExchange?) {
    sockets.want(what, of: socket)
    exchange?.libcurlWants(what, of: socket)
  }

  func opened(_ socket: Int32) {
    counters.connects += 1
    sockets.opened(socket)
  }

  func closed(_ socket: Int32) { sockets.closed(socket) }

  /// A timer that stands already and fires no later is kept: it looks again when it fires.
  func setTimer(_ milliseconds: Int) {
    guard milliseconds > 0 else {
      dueAt = nil
      isDue = milliseconds == 0
      return
    }
    let due = NIODeadline.now() + .milliseconds(Int64(milliseconds))
    dueAt = due
    if let timer, timer.at <= due { return }
    startTimer(milliseconds: Int64(milliseconds), at: due)
  }

  private func startTimer(milliseconds: Int64, at due: NIODeadline) {
    if let timer { context.timers.stop(timer.token) }
    let token = context.timers.start(milliseconds: milliseconds) { self.timerFired() }
    timer = (token, due)
  }

  private func timerFired() {
    timer = nil
    guard let due = dueAt else { return }
    let left = due - .now()
    guard left <= .nanoseconds(0) else {
      return startTimer(milliseconds: left.nanoseconds / 1_000_000 + 1, at: due)
    }
    dueAt = nil
    isDue = true
    turn()
  }
}

import Idempotency
import Loop
import NIOCore
import Wire

/// One connection of HTTP/1.1 to a backend: a request out, its response in, one exchange at a time.
///
/// What the backend sends unasked ends it, and is never part of a response: between exchanges, behind a response's end,
/// and unread when the next request is about to be sent. Bytes that arrive later than that cannot be told from the
/// response.
final class HTTP1Connection: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// What of a head is taken from a backend, which is trusted with more than strangers are: a refused answer would be
  /// an outcome unknown.
  private static let limits = HeadLimits(headBytes: 256 << 10, maxFields: 1000)

  /// Held until it is closed, which under TLS takes a while.
  private let pool: ConnectionPool
  private let socket: BackendSocket
  private var context: ChannelHandlerContext?
  private var writer: SocketWriter?
  private var decoder = ResponseDecoder(limits: limits, method: .get)
  private var inbound = ByteBuffer()
  private var exchange: HTTPExchange?
  private var isDecoding = false
  /// Whether it may be used again after the exchange, as far as is known.
  private var keepsAlive = true
  /// Whether an exchange has ended in order, within the read that is under way.
  private var isFree = false
  private var isClosing = false
  private var isReading = true
  /// Whether both sides have switched to another protocol: bytes pass as they are.
  private var isTunnel = false
  /// Whether an exchange has ended on it.
  private(set) var wasUsed = false
  private var restsSince = NIODeadline.now()
  private var error: (any Error)?
  /// Who waits until all that has come is read.
  private var quiet: (act: (Bool) -> Void, timer: LoopTimers.Token)?

  init(pool: ConnectionPool, socket: BackendSocket) {
    self.pool = pool
    self.socket = socket
    socket.onEncryptedRead { [weak self] in self?.didRead() }
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    writer = SocketWriter(below: context.channel, isPlain: pool.tls == nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    // Not even the last response is in doubt, but the next one's beginning would be.
    guard exchange != nil else { return close() }
    if inbound.readableBytes == 0 { inbound = bytes } else { inbound.writeBuffer(&bytes) }
    decode()
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    // TLS hands on what it has read before it closes behind the backend's leave.
    if !socket.isEncrypted { didRead() }
  }

  /// All of a read has been looked at, and nobody may begin anything on the connection before.
  private func didRead() {
    if isFree {
      isFree = false
      pool.release(self)
    }
    endQuietIfRead()
    pool.upstream.context.executor.drain()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { exchange?.becameWritable() }
    pool.upstream.context.executor.drain()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    self.error = error
    close()
  }

  func channelInactive(context: ChannelHandlerContext) {
    self.context = nil
    // Whoever breaks TLS off may have cut the response short.
    if isTunnel || decoder.finish() == .complete && !(socket.isEncrypted && error != nil) {
      exchange?.ended(trailers: ByteBuffer())
    } else {
      exchange?.connectionEnded(
        error.map(Connector.reason) ?? "the connection ended before the answer did")
    }
    exchange = nil
    isFree = false
    endQuiet(false)
    pool.closed(self)
    pool.upstream.context.executor.drain()
  }
}

// What the pool asks.
extension HTTP1Connection: PooledConnection {
  var isOpen: Bool { !isClosing && context?.channel.isActive == true }

  /// Whether a request may be sent on it now. In clear, whatever is unread was said unasked; under TLS it may be a
  /// session ticket, and has to be read first.
  var standing: BackendSocket.Standing {
    guard isOpen else { return .ended }
    let standing = socket.standing
    return standing == .unread && !socket.isEncrypted ? .ended : standing
  }

  /// Calls back once all that has come is read; `false`: it has ended, by then or by that.
  func whenQuiet(_ act: @escaping (Bool) -> Void) {
    switch standing {
    case .quiet: act(true)
    case .unread:
      // Half a record may stay so for ever.
      let timer = pool.upstream.context.timers.start(milliseconds: max(1, pool.settings.connectTimeout.count))
      { [weak self] in
        self?.close()
      }
      quiet = (act, timer)
    case .ended:
      close()
      act(false)
    }
  }

  private func endQuietIfRead() {
    guard quiet != nil else { return }
    switch standing {
    case .quiet: endQuiet(true)
    case .unread: break
    case .ended: close()
    }
  }

  private func endQuiet(_ isQuiet: Bool) {
    guard let quiet else { return }
    self.quiet = nil
    pool.upstream.context.timers.stop(quiet.timer)
    quiet.act(isQuiet)
  }

  func timeLeft(_ now: NIODeadline) -> Milliseconds {
    pool.settings.idleTimeout - Milliseconds((now - restsSince).nanoseconds / 1_000_000)
  }

  /// It is kept for the next exchange.
  func rest() { restsSince = .now() }

  func close() {
    guard let context, !isClosing else { return }
    isClosing = true
    context.close(promise: nil)
    endQuiet(false)
  }
}

// What the exchange asks.
extension HTTP1Connection: Carrier {
  var isWritable: Bool { context?.channel.isWritable ?? false }

  func begin(_ exchange: HTTPExchange) {
    var method = exchange.request.method
    expect(exchange, answerTo: method.withUTF8 { MessageHead.Method(UnsafeRawBufferPointer($0)) })
    send(exchange.request, of: exchange)
  }

  private func expect(_ exchange: HTTPExchange, answerTo method: MessageHead.Method) {
    self.exchange = exchange
    if wasUsed {
      decoder.begin(method)
    } else {
      decoder = ResponseDecoder(limits: Self.limits, method: method)
    }
    keepsAlive = true
  }

  func write(_ bytes: ByteBuffer) {
    if let context { writer?.write(bytes, context) }
  }

  /// Calls back once all that was written has been handed to the kernel.
  func onceWritten(_ act: @escaping @Sendable () -> Void) {
    guard let context else { return }
    let written = context.eventLoop.makePromise(of: Void.self)
    written.futureResult.whenSuccess(act)
    context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
  }

  /// Tells the backend that nothing more comes; it may still answer.
  func closeOutput() { context?.close(mode: .output, promise: nil) }

  func setReading(_ reads: Bool) {
    guard isReading != reads, let context else { return }
    isReading = reads
    try? context.channel.syncOptions?.setOption(.autoRead, value: reads)
    if reads { context.read() }
  }

  /// It carries one exchange, and is closed with it.
  func timedOut() {}

  func release() { pool.release(self) }

  func cut() {
    exchange = nil
    isClosing = true
    if let context { socket.cut(context) }
  }
}

extension HTTP1Connection {
  private func decode() {
    if isTunnel { return passOn() }
    guard !isDecoding else { return }
    isDecoding = true
    defer { isDecoding = false }
    do {
      while let exchange, !isTunnel, let event = try decoder.next(&inbound) {
        switch event {
        case .head(let head): try received(head, for: exchange)
        case .body(let piece): exchange.received(piece)
        case .end(let trailers): return ended(exchange, trailers)
        }
      }
    } catch {
      let exchange = exchange
      self.exchange = nil
      exchange?.failed((error as? WireError).map { "\($0.sentence)" } ?? "\(error)")
      close()
    }
  }

  private func received(_ head: ResponseHead, for exchange: HTTPExchange) throws {
    if head.isInterim {
      if head.head.status != 100 { exchange.request.interim?.received(interim: head.head) }
      return
    }
    guard head.head.status != 101 else { return try switchProtocols(head, for: exchange) }
    keepsAlive = head.keepAlive && !exchange.request.bindsConnection && !head.head.bindsConnection
    exchange.received(head)
  }

  private func switchProtocols(_ head: ResponseHead, for exchange: HTTPExchange) throws {
    guard exchange.request.upgrade != nil else { throw UnaskedUpgrade() }
    isTunnel = true
    exchange.received(ResponseHead(head: head.head, framing: .untilClose, keepAlive: false))
    passOn()
  }

  private func passOn() {
    guard let exchange, inbound.readableBytes > 0 else { return }
    let bytes = inbound
    inbound = ByteBuffer()
    exchange.received(bytes)
  }

  private func ended(_ exchange: HTTPExchange, _ trailers: ByteBuffer) {
    self.exchange = nil
    wasUsed = true
    // Bytes behind the response belong to nobody; a request cut short leaves the backend waiting for its rest.
    let isClean = keepsAlive && inbound.readableBytes == 0 && exchange.isSent
    inbound = ByteBuffer()
    setReading(true)
    exchange.ended(trailers: trailers)
    if isClean, isOpen { isFree = true } else { close() }
  }

  private struct UnaskedUpgrade: Error, CustomStringConvertible {
    var description: String { "the backend switched protocols unasked" }
  }
}

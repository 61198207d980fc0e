import Idempotency
import Loop
import NIOCore
import NIOSSL
import Wire

/// One connection of HTTP/1.1 to a backend: a request out, its answer in, one exchange at a time.
final class HTTP1Connection: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// What of a head is taken from a backend, which is trusted with more than strangers are: a refused answer would be
  /// an outcome unknown.
  private static let limits = HeadLimits(headBytes: 256 << 10, maxFields: 1000)

  /// Held until it is closed, which under TLS takes a while.
  private let pool: NativePool
  private let socket: BackendSocket
  private var context: ChannelHandlerContext?
  private var writer: SocketWriter?
  private var decoder = ResponseDecoder(limits: limits, method: .get)
  private var inbound = ByteBuffer()
  private var exchange: NativeExchange?
  private var isDecoding = false
  private var keepsAlive = true
  private var isReading = true
  /// Whether both sides have switched to another protocol: bytes pass as they are.
  private var isTunnel = false
  /// Whether an exchange has ended on it.
  private(set) var wasUsed = false
  private var restsSince = NIODeadline.now()
  private var error: (any Error)?

  init(pool: NativePool, socket: BackendSocket) {
    self.pool = pool
    self.socket = socket
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    writer = SocketWriter(below: context.channel, isPlain: pool.tls == nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    // What comes unasked makes the next answer's beginning doubtful.
    guard exchange != nil else { return close() }
    if inbound.readableBytes == 0 { inbound = bytes } else { inbound.writeBuffer(&bytes) }
    decode()
  }

  func channelReadComplete(context: ChannelHandlerContext) {
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
    // Whoever breaks TLS off may have cut the answer short.
    if isTunnel || decoder.finish() == .complete && !(error is NIOSSLError) {
      exchange?.ended(trailers: ByteBuffer())
    } else {
      exchange?.connectionEnded(
        error.map(NativeConnector.reason) ?? "the connection ended before the answer did")
    }
    exchange = nil
    pool.closed(self)
    pool.upstream.context.executor.drain()
  }
}

// What the pool asks.
extension HTTP1Connection: PooledConnection {
  var isOpen: Bool { context?.channel.isActive == true }

  /// Whether another request may be sent on it.
  var isUsable: Bool { isOpen && !hasAged(.now()) }

  /// Whether the backend has not ended it, nor said anything unasked.
  var isEstablished: Bool { isOpen && socket.isQuiet }

  func timeLeft(_ now: NIODeadline) -> Milliseconds {
    pool.settings.idleTimeout - Milliseconds((now - restsSince).nanoseconds / 1_000_000)
  }

  /// It is kept for the next exchange.
  func rest() { restsSince = .now() }

  func close() {
    guard let context else { return }
    context.close(promise: nil)
  }
}

// What the exchange asks.
extension HTTP1Connection: Carrier {
  var isWritable: Bool { context?.channel.isWritable ?? false }

  func begin(_ exchange: NativeExchange) {
    var method = exchange.request.method
    expect(exchange, answerTo: method.withUTF8 { MessageHead.Method(UnsafeRawBufferPointer($0)) })
    send(exchange.request, of: exchange)
  }

  private func expect(_ exchange: NativeExchange, answerTo method: MessageHead.Method) {
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

  func release() { pool.release(self) }

  func cut() {
    exchange = nil
    close()
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

  private func received(_ head: ResponseHead, for exchange: NativeExchange) throws {
    if head.isInterim {
      if head.head.status != 100 { exchange.request.interim?.received(interim: head.head) }
      return
    }
    guard head.head.status != 101 else { return try switchProtocols(head, for: exchange) }
    keepsAlive = head.keepAlive
    exchange.received(head)
  }

  private func switchProtocols(_ head: ResponseHead, for exchange: NativeExchange) throws {
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

  private func ended(_ exchange: NativeExchange, _ trailers: ByteBuffer) {
    self.exchange = nil
    wasUsed = true
    // Bytes behind the answer belong to nobody; a request cut short leaves the backend waiting for its rest.
    let isClean = keepsAlive && inbound.readableBytes == 0 && exchange.isSent
    inbound = ByteBuffer()
    setReading(true)
    exchange.ended(trailers: trailers)
    if isClean, isOpen { pool.release(self) } else { close() }
  }

  private struct UnaskedUpgrade: Error, CustomStringConvertible {
    var description: String { "the backend switched protocols unasked" }
  }
}

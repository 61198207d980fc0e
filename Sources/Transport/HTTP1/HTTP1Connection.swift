import Idempotency
import NIOCore
import Platform
import Wire

/// One HTTP/1.1 connection to a backend, which carries one exchange at a time.
///
/// Bytes that the backend sends unasked close the connection and never become part of a response: bytes between
/// exchanges, bytes behind a response's end, and bytes that are unread when the next request is about to be sent. Bytes
/// that arrive later than that cannot be distinguished from the response. Confined to its loop, hence `@unchecked
/// Sendable`.
final class HTTP1Connection: ChannelInboundHandler, @unchecked Sendable {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The pool, kept alive until the connection is closed, which takes a while under TLS.
  private let pool: ConnectionPool
  private let socket: BackendSocket
  private var context: ChannelHandlerContext?
  private var writer: SocketWriter?
  private var decoder = ResponseDecoder(limits: .backend, method: .get, reading: .tolerant)
  private var inbound = ByteBuffer()
  private var machine = BackendConnectionMachine<HTTPExchange>()
  private var isDecoding = false
  private var isReading = true
  private(set) var restsUntil = NIODeadline.now()
  private var error: (any Error)?
  /// The caller that waits until all bytes that have arrived are read.
  private var quiet: (act: (Bool) -> Void, timer: LoopTimers.Token)?

  init(pool: ConnectionPool, socket: BackendSocket) {
    self.pool = pool
    self.socket = socket
    socket.didReadEncrypted { [weak self] in self?.didRead() }
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    writer = SocketWriter(below: context.channel, isPlain: !socket.isEncrypted)
    // A write that meets a reset takes it away from the reads, which then see a mere end.
    writer?.didFail = { [weak self] in self?.error = $0 }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let bytes = unwrapInboundIn(data)
    switch machine.bytesAction {
    case .drop: return
    case .closeForStrayBytes: return closeForStrayBytes()
    case .decode, .passOn: break
    }
    // Heads and bodies are slices of it.
    inbound.follow(with: bytes.compact)
    decode()
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    // TLS passes on what it has read before it closes the connection after the backend's close_notify.
    if !socket.isEncrypted { didRead() }
  }

  /// Handles the end of a read. Only now may the connection be used for the next exchange.
  private func didRead() {
    if machine.didRead() { pool.release(self) }
    endQuietIfRead()
    pool.upstream.context.executor.drain()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { machine.exchange?.becameWritable() }
    pool.upstream.context.executor.drain()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    self.error = error
    close()
  }

  func channelInactive(context: ChannelHandlerContext) { connectionEnded() }

  /// Handles the end of a connection that was cut as soon as it was made: to NIO it was never active, so that it does
  /// not become inactive either.
  func handlerRemoved(context: ChannelHandlerContext) { connectionEnded() }

  private func connectionEnded() {
    guard context != nil else { return }
    context = nil
    // After an error (a reset, or an end of TLS without close_notify) the response may be truncated (RFC 9112, section
    // 8).
    let isWhole = machine.isTunnel || decoder.finish() == .complete && error == nil
    // The backend itself has ended the connection, as it does after all that it has to say.
    let isCleanEnd = error == nil && !machine.isClosing
    let exchange = machine.endExchange()
    if isWhole {
      exchange?.ended(trailers: ByteBuffer(), isProven: isCleanEnd && socket.isEncrypted)
    } else {
      exchange?.connectionEnded(
        error.map(Connector.reason) ?? "the connection ended before the response did",
        status: isCleanEnd ? decoder.status : nil)
    }
    endQuiet(false)
    pool.closed(self)
    pool.upstream.context.executor.drain()
  }
}

// The pool's view of the connection.
extension HTTP1Connection: PooledConnection {
  var generation: Int? { socket.generation }

  var isOpen: Bool { !machine.isClosing && context?.channel.isActive == true }

  /// The state that decides whether a request may be sent now. Without TLS, unread bytes were sent unasked and mean the
  /// end; under TLS they may be a session ticket, and must be read first.
  var readState: BackendSocket.ReadState {
    guard isOpen else { return .ended }
    let readState = socket.readState
    return readState == .unread && !socket.isEncrypted ? .ended : readState
  }

  /// Calls `act` with true once all bytes that have arrived are read, and with false if the connection has ended.
  func whenQuiet(_ act: @escaping (Bool) -> Void) {
    switch readState {
    case .quiet: act(true)
    case .unread:
      invariant(quiet == nil, "two callers wait for the quiet of one connection")
      // An incomplete record may stay incomplete for ever.
      let timer = pool.upstream.context.timers.start(milliseconds: max(1, pool.settings.connectTimeout.count))
      { [weak self] in
        self?.close()
      }
      quiet = (act, timer)
    case .ended:
      closeUnusable()
      act(false)
    }
  }

  private func endQuietIfRead() {
    guard quiet != nil else { return }
    switch readState {
    case .quiet: endQuiet(true)
    case .unread: break
    case .ended: closeUnusable()
    }
  }

  private func endQuiet(_ isQuiet: Bool) {
    guard let quiet else { return }
    self.quiet = nil
    pool.upstream.context.timers.stop(quiet.timer)
    quiet.act(isQuiet)
  }

  /// Starts the idle time of a connection that is kept for the next exchange.
  func rest() {
    let limit = pool.settings.idleTimeout
    restsUntil = .now() + .milliseconds(min(limit, machine.maxIdleTime ?? limit).count)
  }

  /// Closes a connection that has ended, or on which the backend has sent unsolicited bytes.
  func closeUnusable() {
    if isOpen, !socket.isEncrypted, socket.readState == .unread { closeForStrayBytes() } else { close() }
  }

  private func closeForStrayBytes() {
    if !machine.isClosing { pool.upstream.didEndForStrayBytes(of: pool.settings.name) }
    close()
  }

  func close() {
    guard let context, machine.close() else { return }
    context.close(promise: nil)
    endQuiet(false)
  }
}

// The exchange's view of the connection.
extension HTTP1Connection: ExchangeConnection {
  var wasUsed: Bool { machine.wasUsed }

  var isWritable: Bool { context?.channel.isWritable ?? false }

  /// Whether the connection may carry this exchange: a protected one only where nothing that follows can be the rest of
  /// an earlier response.
  func mayCarry(_ exchange: HTTPExchange) -> Bool { machine.hasCertainOrder || !exchange.request.isProtected }

  /// Whether no exchange is under way on the connection.
  var isFree: Bool { machine.exchange == nil }

  /// Zero, because bytes in the kernel's buffer take none of Semel's memory.
  var bytesAhead: Int { 0 }

  func begin(_ exchange: HTTPExchange) {
    pool.upstream.context.loop.assertInEventLoop()
    var method = exchange.request.method
    expect(exchange, responseTo: method.withUTF8 { MessageHead.Method(UnsafeRawBufferPointer($0)) })
    send(exchange.request, of: exchange)
  }

  private func expect(_ exchange: HTTPExchange, responseTo method: MessageHead.Method) {
    invariant(mayCarry(exchange), "a protected request follows a response without a certain end")
    invariant(inbound.readableBytes == 0, "bytes from before a request would count as its response")
    invariant(quiet == nil, "a request is sent while the bytes before it are awaited")
    machine.begin(exchange)
    if wasUsed {
      decoder.begin(method)
    } else {
      decoder = ResponseDecoder(limits: .backend, method: method, reading: .tolerant)
    }
  }

  func write(_ bytes: ByteBuffer) {
    if let context { writer?.write(bytes, context) }
  }

  /// Calls `act` once all that was written was passed to the kernel.
  func onceWritten(_ act: @escaping @Sendable () -> Void) {
    guard let context else { return }
    let written = context.eventLoop.makePromise(of: Void.self)
    written.futureResult.whenSuccess(act)
    context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
  }

  /// Ends the sending direction. The backend may still respond.
  func closeOutput() { context?.close(mode: .output, promise: nil) }

  func setReading(_ reads: Bool) {
    guard isReading != reads, let context else { return }
    isReading = reads
    context.setReading(reads)
  }

  /// Does nothing: the connection carries only this exchange, and is closed with it.
  func timedOut() {}

  func release() { pool.release(self) }

  func cut(discardsUnsent: Bool) {
    _ = machine.endExchange()
    _ = machine.close()
    if let context { socket.cut(context, discardsUnsent: discardsUnsent) }
  }
}

extension HTTP1Connection {
  private func decode() {
    if machine.isTunnel { return passOn() }
    guard !isDecoding else { return }
    isDecoding = true
    defer { isDecoding = false }
    do {
      while let exchange = machine.exchange, !machine.isTunnel, let event = try decoder.next(&inbound) {
        switch consume event {
        case .head(let head): try received(head, for: exchange)
        case .body(let piece): exchange.received(piece)
        case .end(let trailers): return ended(exchange, trailers)
        }
      }
    } catch {
      let rule = (error as? WireError).map { "\($0.sentence)" } ?? "\(error)"
      machine.endExchange()?.failed(rule, status: decoder.status)
      close()
    }
  }

  private func received(_ head: ResponseHead, for exchange: HTTPExchange) throws {
    if head.isInterim {
      if head.head.status != 100 { exchange.received(interim: head.head) }
      return
    }
    guard head.head.status != 101 else { return try switchProtocols(head, for: exchange) }
    machine.didReceiveHead(
      keepsAlive: head.keepAlive && !exchange.request.bindsConnection && !head.head.bindsConnection,
      hasCertainEnd: head.hasCertainEnd, terms: KeepAliveTerms(of: head.head))
    exchange.received(head)
  }

  /// Switches to the protocol that the client requested, and to no other: requests in another form of HTTP would bypass
  /// the routes.
  private func switchProtocols(_ head: ResponseHead, for exchange: HTTPExchange) throws {
    guard let offer = exchange.request.upgrade, head.head.switches(toOneOf: offer) else {
      throw UnrequestedUpgrade()
    }
    machine.didSwitchProtocols()
    exchange.received(ResponseHead(head: head.head, framing: .untilClose, keepAlive: false))
    passOn()
  }

  private func passOn() {
    guard let exchange = machine.exchange, inbound.readableBytes > 0 else { return }
    let bytes = inbound
    inbound = ByteBuffer()
    exchange.received(bytes)
  }

  private func ended(_ exchange: HTTPExchange, _ trailers: ByteBuffer) {
    let action = machine.didEndResponse(isSent: exchange.isSent, hasStrayBytes: inbound.readableBytes > 0)
    inbound = ByteBuffer()
    setReading(true)
    exchange.ended(trailers: trailers)
    switch action {
    case .keep: if context?.channel.isActive != true { close() }
    case .close: close()
    case .closeForStrayBytes: closeForStrayBytes()
    }
  }

  private struct UnrequestedUpgrade: Error, CustomStringConvertible {
    var description: String { "the backend switched to a protocol that was not requested" }
  }
}

extension MessageHead {
  /// Whether the `Upgrade` of a 101 names protocols, and each of them is one of the offer, a comma-separated list.
  fileprivate func switches(toOneOf offer: ByteBuffer) -> Bool {
    var isNamed = false
    let isOffered = readList(of: FieldNameSet(.upgrade)) { chosen in
      isNamed = true
      return offer.withUnsafeReadableBytes { offer in
        ListElements(offer).contains { ASCII.equalsIgnoringCase($0, chosen) }
      }
    }
    return isNamed && isOffered
  }
}

import Idempotency
import NIOCore
import Platform
import Wire

// The transitions between stages. Called by the pool and the connection.
extension HTTPExchange {
  var isWaiting: Bool {
    if case .waiting = stage { true } else { false }
  }

  var isConnecting: Bool {
    if case .connecting = stage { true } else { false }
  }

  private var isRunning: Bool {
    if case .running = stage { true } else { false }
  }

  /// Waits for a connection, because all are in use, for as long as a connect may take.
  func awaitConnection() {
    context.loop.assertInEventLoop()
    invariant(!stage.isHeld, "an exchange waits for a connection beside another one")
    let span = request.upstream.connectTimeout
    let timer = context.timers.start(milliseconds: span.count) {
      var failure = self.gate.failure("no connection was free within \(span.count) ms")
      if case .notSent(let reason) = failure, self.pool.isBusy(for: self) { failure = .busy(reason) }
      self.fail(failure)
    }
    stage = .waiting(timer)
  }

  func connect() {
    context.loop.assertInEventLoop()
    invariant(head == nil && sentAt == nil, "a request is to be sent again that was sent")
    leaveStage()
    stage = .connecting
  }

  func connectFailed(_ reason: String) {
    context.loop.assertInEventLoop()
    guard isConnecting else { return }
    stage = .ended
    var random = SystemRandomNumberGenerator()
    guard let delay = backoff.next(using: &random), gate.allowsRetry(after: delay, now: .now) else {
      pool.upstream.didFailToConnect(to: request.upstream.name, because: reason)
      return fail(reason)
    }
    pool.upstream.logRetry(of: request.upstream.name, after: reason, in: delay)
    let timer = context.timers.start(milliseconds: delay.count) {
      self.stage = .ended
      self.pool.start(self)
    }
    stage = .backingOff(timer)
  }

  /// Sends the request, unless its permit refuses.
  func run(on connection: any ExchangeConnection) {
    context.loop.assertInEventLoop()
    invariant(!isRunning, "an exchange begins on a second connection")
    leaveStage()
    // The pool may have run its caller, which has given it up, on the way to this connection.
    guard failure == nil, gate.open(now: .now) else {
      connection.release()
      return fail("the request may not be sent")
    }
    pool.upstream.counters.sends += 1
    stage = .running(connection)
    send(on: connection)
  }

  /// Handles the end of the connection before the response was complete.
  ///
  /// - Parameter status: The status of a response that the backend itself has cut short; `nil` if none had begun, or
  ///   something else may have cut it.
  func connectionEnded(_ reason: String, status: Int? = nil) {
    context.loop.assertInEventLoop()
    guard case .running(let connection) = stage else { return }
    stage = .ended
    // A kept connection of HTTP/1.1 that the backend was just closing.
    if connection.wasUsed, repeats() { return }
    fail(failure(reason, status: status))
  }

  /// Handles a response that breaks a rule of HTTP so that it cannot be read.
  ///
  /// - Parameter status: The response's status; `nil` if its status line cannot be read, either.
  func failed(_ rule: String, status: Int?) { fail(failure(rule, status: status)) }

  private func failure(_ rule: String, status: Int?) -> UpstreamFailure {
    guard let status else { return gate.failure(rule) }
    pool.upstream.didReceiveMalformed(from: request.upstream.name, because: rule)
    return .malformed(status: status, rule: rule)
  }

  /// Handles the backend's statement that it did not process the request (RFC 9113, section 8.7).
  func wasRefused(_ reason: String) {
    context.loop.assertInEventLoop()
    guard case .running = stage else { return }
    invariant(head == nil, "a request counts as refused to which the backend responds")
    stage = .ended
    if !repeats() { fail(.notSent(reason)) }
  }

  /// Starts the exchange a second time, if the request is safe and was never claimed, and at most once.
  ///
  /// Returns false if it may not be repeated.
  private func repeats() -> Bool {
    guard !isRepeated, head == nil, gate.mayRepeat else { return false }
    invariant(
      request.permit == nil && !request.isProtected, "a request is repeated that a claim permits once")
    isRepeated = true
    sentAt = nil
    pool.start(self, isFresh: true)
    return true
  }

  func fail(_ reason: String) { fail(gate.failure(reason)) }

  /// Ends the exchange. Only the first failure is kept.
  func fail(_ failure: UpstreamFailure) {
    if self.failure == nil { self.failure = failure }
    leaveStage()
    signal.set()
  }

  func leaveStage() {
    context.loop.assertInEventLoop()
    let left = stage
    stage = .ended
    switch left {
    case .waiting(let timer):
      context.timers.stop(timer)
      pool.waitEnded()
    case .backingOff(let timer): context.timers.stop(timer)
    case .running(let connection): connection.cut(discardsUnsent: gate.isProtected)
    case .connecting, .ended: break
    }
    if isPumping { room.set() }
    countWaiting()
  }
}

// Sending the request.
extension HTTPExchange {
  func send(on connection: any ExchangeConnection) {
    invariant(request.permit?.isSent ?? true, "a claimed request leaves without its permit")
    invariant(head == nil && failure == nil && sentAt == nil, "a request is sent that has ended")
    connection.begin(self)
    guard case .streamed(let stream, let length) = request.body else { return }
    context.task { await self.pump(stream, length: length, on: connection) }
  }

  /// Records that the last byte of the request was passed to the kernel.
  func wasSent(on connection: any ExchangeConnection) {
    context.loop.assertInEventLoop()
    guard isRunning(on: connection) else { return }
    invariant(sentAt == nil, "the last byte of a request leaves twice")
    sentAt = .now()
    signal.set()
  }

  private func isRunning(on connection: any ExchangeConnection) -> Bool {
    if case .running(let running) = stage { running === connection } else { false }
  }

  /// Sends a client's body as it arrives, and reads from the client no faster than the backend takes it.
  ///
  /// The exchange reads the next piece once the connection is writable again: over HTTP/1.1 once NIO's queue holds less
  /// than 64 KiB, over HTTP/2 once nothing of the stream waits. Each connection thus holds less than 64 KiB that
  /// `limits.body_memory` does not count: the last piece and the bytes that arrive meanwhile stay counted until the next
  /// piece is read.
  private func pump(_ stream: any RequestBodyStream, length: Int?, on connection: any ExchangeConnection)
    async
  {
    var left = length
    guard isRunning(on: connection) else { return }
    beginPumping(stream)
    mayBeHeldUp()
    do throws(UpstreamFailure) {
      while left != 0, let piece = try await nextPiece(of: stream) {
        guard isRunning(on: connection) else { return }
        guard piece.readableBytes > 0 else { continue }
        if let remaining = left {
          guard piece.readableBytes <= remaining else {
            return fail(.requestBody("the request's body is longer than its length"))
          }
          left = remaining - piece.readableBytes
        }
        pace.didMove(piece.readableBytes, now: .now())
        connection.write(piece, of: self)
        try await waitForRoom(on: connection, for: stream)
        wasTaken()
      }
      guard isRunning(on: connection) else { return }
      if let left, left > 0 { return fail(.requestBody("the request's body ended early")) }
      connection.endBody(of: self)
    } catch {
      guard isRunning(on: connection) else { return }
      fail(error)
    }
  }

  public func tunnel(_ bytes: any RequestBodyStream) {
    context.loop.assertInEventLoop()
    guard case .running(let running) = stage, let connection = running as? HTTP1Connection else { return }
    context.task { await self.pass(bytes, on: connection) }
  }

  /// Sends the client's bytes until the client ends its side or disconnects.
  private func pass(_ bytes: any RequestBodyStream, on connection: HTTP1Connection) async {
    beginPumping(bytes)
    do throws(UpstreamFailure) {
      while let piece = try await bytes.next() {
        guard isRunning(on: connection) else { return }
        connection.write(piece)
        try await waitForRoom(on: connection, for: bytes)
      }
      guard isRunning(on: connection) else { return }
      connection.closeOutput()
    } catch {
      guard isRunning(on: connection) else { return }
      fail(error)
    }
  }

  private func beginPumping(_ stream: any RequestBodyStream) {
    isPumping = true
    stream.whenFailed { [weak self] in self?.room.set() }
  }

  /// Waits until the connection takes more, or the exchange has ended. Throws if the body fails meanwhile, since a
  /// backend may take nothing for a long time.
  private func waitForRoom(
    on connection: any ExchangeConnection, for stream: any RequestBodyStream
  ) async throws(UpstreamFailure) {
    while !connection.isWritable, isRunning(on: connection) {
      if let failure = stream.failure { throw failure }
      _ = await room.wait()
    }
  }

  private func nextPiece(of stream: any RequestBodyStream) async throws(UpstreamFailure) -> ByteBuffer? {
    pace.isStarving = true
    defer {
      pace.isStarving = false
      takenAt = .now()
    }
    return try await stream.next()
  }
}

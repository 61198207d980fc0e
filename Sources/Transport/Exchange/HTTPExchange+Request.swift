import Idempotency
import NIOCore
import Platform
import Wire

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

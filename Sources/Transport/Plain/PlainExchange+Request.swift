import Idempotency
import Loop
import NIOCore
import Wire

// The request's way out.
extension PlainExchange {
  /// A request of at most so many bytes finds room in the kernel's buffer of a connection without other traffic.
  private static var surelyTaken: Int { 16 << 10 }

  /// Up to here a body is copied behind its head, so that both go out in one write.
  private static var copiedBody: Int { 64 << 10 }

  func send(on connection: PlainConnection) {
    var method = request.method
    connection.begin(self, method.withUTF8 { MessageHead.Method(UnsafeRawBufferPointer($0)) })
    switch request.body {
    case .none:
      sent(requestHead(bodyCapacity: 0), on: connection)
    case .whole(let body):
      var out = requestHead(bodyCapacity: body.readableBytes > Self.copiedBody ? 0 : body.readableBytes)
      if body.readableBytes <= Self.copiedBody {
        out.writeImmutableBuffer(body)
        sent(out, on: connection)
      } else {
        connection.write(out)
        sent(body, on: connection)
      }
    case .streamed(let stream, let length):
      connection.write(requestHead(bodyCapacity: 0))
      context.task { await self.pump(stream, length: length, on: connection) }
    }
  }

  /// Writes the last of the request.
  private func sent(_ bytes: ByteBuffer, on connection: PlainConnection) {
    if bytes.readableBytes <= Self.surelyTaken {
      sentAt = .now()
      return connection.write(bytes)
    }
    connection.write(bytes)
    connection.onceWritten { self.wasSent(on: connection) }
  }

  private func wasSent(on connection: PlainConnection) {
    guard isRunning(on: connection) else { return }
    sentAt = .now()
    signal.set()
  }

  private func requestHead(bodyCapacity: Int) -> ByteBuffer {
    var out = ByteBufferAllocator().buffer(
      capacity: request.target.utf8.count + request.fields.readableBytes + bodyCapacity + 96)
    out.writeString(request.method)
    out.writeStaticString(" ")
    out.writeString(request.target)
    out.writeStaticString(" HTTP/1.1\r\n")
    out.writeImmutableBuffer(request.fields)
    switch request.body {
    case .none: break
    case .whole(let body): out.writeContentLength(body.readableBytes)
    case .streamed(_, let length?): out.writeContentLength(length)
    case .streamed(_, nil): out.writeChunkedCoding()
    }
    if let upgrade = request.upgrade {
      out.writeStaticString("Connection: Upgrade\r\nUpgrade: ")
      out.writeImmutableBuffer(upgrade)
      out.writeStaticString("\r\n")
    }
    out.writeStaticString("\r\n")
    return out
  }

  func isRunning(on connection: PlainConnection) -> Bool {
    if case .running(let running) = stage { running === connection } else { false }
  }

  /// Sends a client's body as it comes, and takes no more of it than the backend takes.
  private func pump(
    _ stream: any RequestBodyStream, length: Int?, on connection: PlainConnection
  ) async {
    var left = length
    guard isRunning(on: connection) else { return }
    do throws(UpstreamFailure) {
      while left != 0, let piece = try await nextPiece(of: stream) {
        guard isRunning(on: connection) else { return }
        guard piece.readableBytes > 0 else { continue }
        if let most = left {
          guard piece.readableBytes <= most else {
            return fail(.requestBody("the request's body is longer than its length"))
          }
          left = most - piece.readableBytes
        }
        connection.write(length == nil ? Self.chunk(piece) : piece)
        while !connection.isWritable, isRunning(on: connection) { _ = await room.wait() }
        uploaded += Int64(piece.readableBytes)
      }
      guard isRunning(on: connection) else { return }
      if let left, left > 0 { return fail(.requestBody("the request's body ended early")) }
      if length == nil {
        var end = ByteBuffer()
        end.writeLastChunk()
        connection.write(end)
      }
      connection.onceWritten { self.wasSent(on: connection) }
    } catch {
      guard isRunning(on: connection) else { return }
      fail(error)
    }
  }

  package func tunnel(_ bytes: any RequestBodyStream) {
    guard case .running(let connection) = stage else { return }
    context.task { await self.pass(bytes, on: connection) }
  }

  /// Sends what the client sends, until it says that this was all, or goes away.
  private func pass(_ bytes: any RequestBodyStream, on connection: PlainConnection) async {
    do throws(UpstreamFailure) {
      while let piece = try await bytes.next() {
        guard isRunning(on: connection) else { return }
        connection.write(piece)
        while !connection.isWritable, isRunning(on: connection) { _ = await room.wait() }
      }
      guard isRunning(on: connection) else { return }
      connection.closeOutput()
    } catch {
      guard isRunning(on: connection) else { return }
      fail(error)
    }
  }

  private func nextPiece(of stream: any RequestBodyStream) async throws(UpstreamFailure) -> ByteBuffer? {
    isStarving = true
    defer { isStarving = false }
    return try await stream.next()
  }

  private static func chunk(_ piece: ByteBuffer) -> ByteBuffer {
    var out = ByteBufferAllocator().buffer(capacity: piece.readableBytes + 24)
    out.writeChunkHeader(piece.readableBytes)
    out.writeImmutableBuffer(piece)
    out.writeChunkEnd()
    return out
  }
}

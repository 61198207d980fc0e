import Idempotency
import NIOCore
import Wire

// Sending the request.
extension HTTP1Connection {
  /// The maximum size of a request, in bytes, that surely fits in the kernel's buffer of a connection without other
  /// traffic.
  private static var maxUnqueuedBytes: Int { 16 << 10 }

  /// The maximum size of a body, in bytes, that is copied behind its head, so that both leave in one write.
  private static var copiedBody: Int { 64 << 10 }

  /// The size of the pieces in which a larger body is written, in bytes. Pieces make a backend that reads slowly
  /// distinguishable from one that reads nothing.
  private static var pieceBytes: Int { 256 << 10 }

  func send(_ request: UpstreamRequest, of exchange: HTTPExchange) {
    switch request.body {
    case .none:
      finish(Self.head(of: request, bodyCapacity: 0), of: exchange)
    case .whole(let body) where body.readableBytes <= Self.copiedBody:
      var out = Self.head(of: request, bodyCapacity: body.readableBytes)
      out.writeImmutableBuffer(body)
      finish(out, of: exchange)
    case .whole(var body):
      write(Self.head(of: request, bodyCapacity: 0))
      while body.readableBytes > Self.pieceBytes, let piece = body.readSlice(length: Self.pieceBytes) {
        write(piece)
        onceWritten { exchange.wasTaken() }
      }
      finish(body, of: exchange)
    case .streamed:
      write(Self.head(of: request, bodyCapacity: 0))
    }
  }

  func write(_ piece: ByteBuffer, of exchange: HTTPExchange) {
    write(exchange.request.body.isChunked ? Self.chunk(piece) : piece)
  }

  func endBody(of exchange: HTTPExchange) {
    if exchange.request.body.isChunked {
      var end = ByteBuffer()
      end.writeLastChunk()
      write(end)
    }
    onceWritten { exchange.wasSent(on: self) }
  }

  /// Writes the last part of the request.
  private func finish(_ bytes: ByteBuffer, of exchange: HTTPExchange) {
    if bytes.readableBytes <= Self.maxUnqueuedBytes {
      exchange.sentAt = .now()
      return write(bytes)
    }
    write(bytes)
    onceWritten { exchange.wasSent(on: self) }
  }

  private static func head(of request: UpstreamRequest, bodyCapacity: Int) -> ByteBuffer {
    var out = ByteBufferAllocator().buffer(
      capacity: request.target.utf8.count + request.fields.readableBytes + bodyCapacity + 96)
    out.writeRequestLine(method: request.method, target: request.target)
    out.writeImmutableBuffer(request.fields)
    switch request.body {
    // Some servers wait for a body, or respond 411, without a length (RFC 9110, section 8.6).
    case .none: if ["POST", "PUT", "PATCH"].contains(request.method) { out.writeContentLength(0) }
    case .whole(let body): out.writeContentLength(body.readableBytes)
    case .streamed(_, let length?): out.writeContentLength(length)
    case .streamed(_, nil): out.writeChunkedCoding()
    }
    if let upgrade = request.upgrade {
      out.writeLiteral("Connection: Upgrade\r\nUpgrade: ")
      out.writeImmutableBuffer(upgrade)
      out.writeLiteral("\r\n")
    }
    out.writeLiteral("\r\n")
    return out
  }

  private static func chunk(_ piece: ByteBuffer) -> ByteBuffer {
    var out = ByteBufferAllocator().buffer(capacity: piece.readableBytes + 24)
    out.writeChunkHeader(piece.readableBytes)
    out.writeImmutableBuffer(piece)
    out.writeChunkEnd()
    return out
  }
}

extension RequestBody {
  fileprivate var isChunked: Bool {
    if case .streamed(_, nil) = self { true } else { false }
  }
}

import Idempotency
import NIOCore
import NIOHPACK
import NIOHTTP2
import Wire

// Sending the request.
extension HTTP2Stream {
  /// The size of the pieces in which a whole body is written, in bytes. Pieces make a backend that reads slowly
  /// distinguishable from one that reads nothing.
  private static var pieceBytes: Int { 64 << 10 }

  func send(_ request: UpstreamRequest, of exchange: HTTPExchange) {
    let head = HPACKHeaders(request)
    switch request.body {
    case .none:
      write(head, isEnd: true, of: exchange)
    case .whole(let body):
      write(head, isEnd: body.readableBytes == 0, of: exchange)
      if body.readableBytes > 0 { write(whole: body, of: exchange) }
    case .streamed:
      write(head, isEnd: false, of: exchange)
    }
    context?.flush()
  }

  func write(_ piece: ByteBuffer, of exchange: HTTPExchange) {
    connection.willSend(piece.readableBytes)
    waitingPieces += 1
    write(
      .data(.init(data: .byteBuffer(piece), endStream: false)),
      promise: promise { stream in
        invariant(stream.waitingPieces > 0, "a piece of a body leaves twice")
        stream.waitingPieces -= 1
        if stream.isWritable { exchange.becameWritable() }
      })
    context?.flush()
  }

  func endBody(of exchange: HTTPExchange) {
    writeLast(.data(.init(data: .byteBuffer(ByteBuffer()), endStream: true)), of: exchange)
    context?.flush()
  }

  private func write(_ head: HPACKHeaders, isEnd: Bool, of exchange: HTTPExchange) {
    let payload = HTTP2Frame.FramePayload.headers(.init(headers: head, endStream: isEnd))
    if isEnd { return writeLast(payload, of: exchange) }
    write(payload, promise: promise { _ in })
  }

  private func write(whole body: ByteBuffer, of exchange: HTTPExchange) {
    var rest = body
    while rest.readableBytes > Self.pieceBytes, let piece = rest.readSlice(length: Self.pieceBytes) {
      connection.willSend(piece.readableBytes)
      write(
        .data(.init(data: .byteBuffer(piece), endStream: false)),
        promise: promise { _ in exchange.wasTaken() })
    }
    connection.willSend(rest.readableBytes)
    writeLast(.data(.init(data: .byteBuffer(rest), endStream: true)), of: exchange)
  }

  private func writeLast(_ payload: HTTP2Frame.FramePayload, of exchange: HTTPExchange) {
    write(payload, promise: promise { exchange.wasSent(on: $0) })
  }

  private func write(_ payload: HTTP2Frame.FramePayload, promise: EventLoopPromise<Void>?) {
    context?.write(wrapOutboundOut(payload), promise: promise)
  }

  /// Returns a promise that calls `hasLeft` once a frame has left. If the frame cannot leave, the stream is closed.
  private func promise(_ hasLeft: @escaping @Sendable (HTTP2Stream) -> Void) -> EventLoopPromise<Void>? {
    guard let context else { return nil }
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.whenComplete { result in
      switch result {
      case .success: hasLeft(self)
      case .failure:
        // When the backend resets a stream, NIO fails the waiting frames before it passes on the reset, which may state
        // that nothing was taken. Hence the close comes in the next turn, after the reset.
        self.context?.eventLoop.execute { self.context?.close(promise: nil) }
      }
    }
    return promise
  }
}

extension HPACKHeaders {
  /// A request's head (RFC 9113, section 8.3.1): `Host` becomes `:authority`.
  fileprivate init(_ request: UpstreamRequest) {
    var host = ""
    var fields: [(String, String)] = []
    fields.reserveCapacity(24)
    request.fields.eachFieldLine { name, value in
      if name == "host" { host = value } else { fields.append((name, value)) }
    }
    var head = [
      (":method", request.method), (":scheme", request.upstream.tls == nil ? "http" : "https"),
      (":path", request.target),
    ]
    if !host.isEmpty { head.append((":authority", host)) }
    switch request.body {
    case .none, .streamed(_, nil): break
    case .whole(let body): fields.append(("content-length", String(body.readableBytes)))
    case .streamed(_, let length?): fields.append(("content-length", String(length)))
    }
    self.init(head + fields)
  }
}

extension UpstreamRequest {
  /// The bytes that HTTP/2 counts for each field, besides its name and value (RFC 9113, section 6.5.2).
  private static let fieldOverhead = 32

  /// Whether the head's fields take no more than `limit` bytes, as `SETTINGS_MAX_HEADER_LIST_SIZE` counts them.
  func hasHead(within limit: Int) -> Bool {
    // Besides the lines `:method`, `:scheme`, `:path` and a length, and `:authority` in the place of `host`.
    let rest = method.utf8.count + target.utf8.count + 64 + 4 * Self.fieldOverhead
    // A line has five bytes at least. Its colon, space and end are not counted.
    if rest + 7 * fields.readableBytes <= limit { return true }
    let lines = fields.withUnsafeReadableBytes { bytes in bytes.count { $0 == ASCII.lineFeed } }
    return rest + fields.readableBytes + lines * (Self.fieldOverhead - 4) <= limit
  }

  /// Whether the head certainly fits in a single HEADERS frame.
  var fitsHTTP2: Bool {
    // The names of pseudo-header fields, a length, and changes of the dynamic table's size.
    var size = 128 + HPACKBound.maxBytes(for: method.utf8) + HPACKBound.maxBytes(for: target.utf8)
    var bits = 0
    fields.withUnsafeReadableBytes { bytes in
      for byte in bytes {
        switch byte {
        case ASCII.lineFeed: size += HPACKBound.fieldBytes
        case ASCII.carriageReturn: break
        default: bits += HPACKBound.maxBits(for: byte)
        }
      }
    }
    return size + bits / 8 <= HPACKBound.frameBytes
  }
}

import NIOCore

/// Decodes responses from a server's bytes, strictly by RFC 9112. Performs no I/O.
///
/// The counterpart of `RequestDecoder`, used in the same way. The method of the request determines whether the response
/// has a body, so the decoder stops after each response until `begin` is called with the next method.
public struct ResponseDecoder: Sendable {
  public enum Event: Sendable {
    /// The head of a response. After an interim response comes another head; after a final one, the body and `end`.
    case head(ResponseHead)
    /// A piece of the body, at least one byte long.
    case body(ByteBuffer)
    /// The response is complete. `trailers` holds the end-to-end field lines, each ended by CRLF.
    case end(trailers: ByteBuffer)
  }

  /// The meaning of the end of input.
  public enum InputEnd: Equatable, Sendable {
    /// No response was in progress: the connection was idle.
    case idle
    /// The response is complete: its framing lets the body end with the connection.
    case complete
    /// The response is incomplete, or did not begin.
    case truncated
  }

  private enum State {
    /// No response is expected. Followed by `head`.
    case idle
    /// Before or within a head. Followed by `head` after an interim response, by `body`, or by `failed`.
    case head
    /// A final head has been returned. Followed by `idle` when the response ends, or by `failed`.
    case body
    case failed(WireError)
  }

  private let limits: HeadLimits
  private var method: MessageHead.Method
  private var state = State.head
  private var scanner: FieldScanner
  private var line: StatusLineParser?
  private var body: BodyDecoder

  /// Creates a decoder that expects the response to a request of this method.
  public init(limits: HeadLimits = HeadLimits(), method: MessageHead.Method) {
    self.limits = limits
    self.method = method
    scanner = FieldScanner(limits: limits)
    body = BodyDecoder(.none, limits: limits)
  }

  /// Prepares for the response to the next request on the connection. The previous response must have ended.
  public mutating func begin(_ method: MessageHead.Method) {
    guard case .idle = state else { preconditionFailure("A response is still in progress in \(state).") }
    self.method = method
    state = .head
  }

  /// The next event; `nil` if more bytes are needed or no response is expected.
  public mutating func next(_ input: inout ByteBuffer) throws(WireError) -> Event? {
    do throws(WireError) {
      switch state {
      case .idle:
        return nil
      case .head:
        return try head(&input)
      case .body:
        switch try body.next(&input) {
        case .piece(let bytes): return .body(bytes)
        case .end(let trailers):
          state = .idle
          return .end(trailers: trailers)
        case nil: return nil
        }
      case .failed(let error):
        throw error
      }
    } catch {
      state = .failed(error)
      throw error
    }
  }

  /// Ends the input and returns what that means. Before the call, `next` must have taken all bytes.
  public mutating func finish() -> InputEnd {
    switch state {
    case .idle: return .idle
    case .body where body.endsAtClose:
      state = .idle
      return .complete
    case .head, .body, .failed: return .truncated
    }
  }

  private mutating func head(_ input: inout ByteBuffer) throws(WireError) -> Event? {
    let length = try input.withUnsafeReadableBytes { bytes throws(WireError) -> Int? in
      if line == nil {
        guard let end = try scanner.startLine(in: bytes) else { return nil }
        line = try StatusLineParser(bytes, end: end)
      }
      return try scanner.section(in: bytes)
    }
    guard let length, let line, let bytes = input.readSlice(length: length) else { return nil }
    let response = try response(line, bytes)
    self.line = nil
    if response.isInterim { return .head(response) }
    state = .body
    switch response.framing {
    case .none: body = BodyDecoder(.none, limits: limits)
    case .length(let length): body = BodyDecoder(.length(length), limits: limits)
    case .chunked: body = BodyDecoder(.chunked, limits: limits, ofResponse: true)
    case .untilClose: body = BodyDecoder(untilCloseWithin: limits)
    }
    return .head(response)
  }

  private mutating func response(
    _ line: StatusLineParser, _ bytes: ByteBuffer
  ) throws(WireError) -> ResponseHead {
    let head = MessageHead(
      bytes: bytes, start: line.start, minorVersion: line.minorVersion, fields: scanner.takeFields())
    let fields = try bytes.withUnsafeReadableBytes { bytes throws(WireError) in
      try FramingFields(head.fields, in: bytes)
    }
    if fields.isChunked && head.minorVersion == 0 { throw .transferCodingInHTTP10 }
    let framing = framing(of: head.status, fields)
    // A forbidden body may still come, and then the bytes that follow cannot be trusted.
    let mayHaveBody =
      head.status >= 200 && head.status != 204 || !fields.isChunked && fields.contentLength ?? 0 == 0
    let persists = fields.isPersistent(minorVersion: head.minorVersion) && framing != .untilClose
    return ResponseHead(
      head: head, framing: framing, keepAlive: persists && mayHaveBody && head.status != 101)
  }

  /// The framing of the response's body (RFC 9112, section 6.3).
  private func framing(of status: Int, _ fields: FramingFields) -> ResponseHead.Framing {
    let isTunnel = method == .connect && 200..<300 ~= status
    if method == .head || isTunnel || status < 200 || status == 204 || status == 304 { return .none }
    if fields.isChunked { return .chunked }
    return fields.contentLength.map(ResponseHead.Framing.length) ?? .untilClose
  }
}

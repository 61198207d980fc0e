import NIOCore

/// Makes answers out of a server's bytes, strictly by RFC 9112. Decides; reads and writes nothing.
///
/// The counterpart of `RequestDecoder`, used in the same way. It has to be told the method of each request,
/// for that decides whether an answer has a body; so it stops after each answer until `begin` is called.
public struct ResponseDecoder: Sendable {
  public enum Event: Sendable {
    /// The head of an answer. After an interim one comes another head, after every other one body and end.
    case head(ResponseHead)
    /// A piece of the body, never empty.
    case body(ByteBuffer)
    /// The answer is complete. `trailers` are end-to-end lines, each ended by CRLF.
    case end(trailers: ByteBuffer)
  }

  /// What the end of input means.
  public enum InputEnd: Equatable, Sendable {
    /// No answer is under way: the connection was idle.
    case idle
    /// The body ended with the connection, as its framing says. This is the answer's end.
    case complete
    /// The answer is not whole, or did not even begin.
    case truncated
  }

  private enum State {
    /// No answer is expected. Followed by `head`.
    case idle
    /// Before or within a head. Followed by `head` after an interim one, by `body` or `failed`.
    case head
    /// A final head was given out. Followed by `idle` when the answer ends, or by `failed`.
    case body
    case failed(WireError)
  }

  private let limits: HeadLimits
  private var method: MessageHead.Method
  private var state = State.head
  private var scanner: FieldScanner
  private var line: StatusLineParser?
  private var body: BodyDecoder

  /// Expects the answer to a request of this method.
  public init(limits: HeadLimits = HeadLimits(), method: MessageHead.Method) {
    self.limits = limits
    self.method = method
    scanner = FieldScanner(limits: limits)
    body = BodyDecoder(.none, limits: limits)
  }

  /// Expects the answer to the next request on the connection. The last answer must have ended.
  public mutating func begin(_ method: MessageHead.Method) {
    guard case .idle = state else { preconditionFailure("An answer is still under way in \(state).") }
    self.method = method
    state = .head
  }

  /// The next event; `nil` where more bytes are needed or no answer is expected.
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

  /// Tells the end of input. All bytes must have been taken by `next` before.
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
    let said = try bytes.withUnsafeReadableBytes { bytes throws(WireError) in
      try FramingFields(head.fields, in: bytes)
    }
    if said.isChunked && head.minorVersion == 0 { throw .transferCodingInHTTP10 }
    let framing = framing(of: head.status, said)
    // A body that must not be there may come all the same: what follows could not be trusted.
    let mayHaveBody =
      head.status >= 200 && head.status != 204 || !said.isChunked && said.contentLength ?? 0 == 0
    let persists = said.isPersistent(minorVersion: head.minorVersion) && framing != .untilClose
    return ResponseHead(
      head: head, framing: framing, keepAlive: persists && mayHaveBody && head.status != 101)
  }

  /// RFC 9112, section 6.3.
  private func framing(of status: Int, _ said: FramingFields) -> ResponseHead.Framing {
    let isTunnel = method == .connect && 200..<300 ~= status
    if method == .head || isTunnel || status < 200 || status == 204 || status == 304 { return .none }
    if said.isChunked { return .chunked }
    return said.contentLength.map(ResponseHead.Framing.length) ?? .untilClose
  }
}

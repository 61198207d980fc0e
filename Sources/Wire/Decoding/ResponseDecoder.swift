import NIOCore

/// Decodes responses from a server's bytes by RFC 9112, strictly or tolerantly. Performs no I/O.
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
  private let reading: Reading
  private var method: MessageHead.Method
  private var state = State.head
  /// The status of the response, from its status line on, also where what follows is refused; `nil` before that, and for
  /// an interim response.
  public private(set) var status: Int?
  private var scanner: FieldScanner
  private var line: StatusLineParser?
  private var body: BodyDecoder

  /// Creates a decoder that expects the response to a request of this method.
  public init(limits: HeadLimits = HeadLimits(), method: MessageHead.Method, reading: Reading = .strict) {
    self.limits = limits
    self.reading = reading
    self.method = method
    scanner = FieldScanner(limits: limits, reading: reading)
    body = BodyDecoder(.none, limits: limits)
  }

  /// Prepares for the response to the next request on the connection. The previous response must have ended.
  public mutating func begin(_ method: MessageHead.Method) {
    guard case .idle = state else { invariantBroken("a response begins within another one") }
    self.method = method
    status = nil
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
        line = try statusLine(in: bytes)
        if line == nil { return nil }
      }
      return try scanner.section(in: bytes)
    }
    guard let length, let line, var bytes = input.readSlice(length: length) else { return nil }
    let isDoubtful = scanner.isDoubtful
    let fields = scanner.takeFields(of: &bytes)
    let response = try response(line, bytes, fields, isDoubtful: isDoubtful)
    self.line = nil
    if response.isInterim { return .head(response) }
    state = .body
    switch response.framing {
    case .none: body = BodyDecoder(.none, limits: limits)
    case .length(let length): body = BodyDecoder(.length(length), limits: limits)
    case .chunked: body = BodyDecoder(.chunked, limits: limits, ofResponse: true, reading: reading)
    case .untilClose: body = BodyDecoder(untilCloseWithin: limits)
    }
    return .head(response)
  }

  /// Parses the status line; `nil` if more bytes are needed. The status counts also where a line feed alone ends the
  /// line, for which the response is refused.
  private mutating func statusLine(in bytes: UnsafeRawBufferPointer) throws(WireError) -> StatusLineParser? {
    do throws(WireError) {
      guard let end = try scanner.startLine(in: bytes) else { return nil }
      let line = try StatusLineParser(bytes, end: end)
      status = line.finalStatus
      return line
    } catch {
      if error == .badLineEnd, let end = ASCII.index(of: ASCII.lineFeed, in: bytes, 0..<bytes.count) {
        status = (try? StatusLineParser(bytes, end: end))?.finalStatus
      }
      throw error
    }
  }

  private func response(
    _ line: StatusLineParser, _ bytes: ByteBuffer, _ lines: [MessageHead.Field], isDoubtful: Bool
  ) throws(WireError) -> ResponseHead {
    var head = MessageHead(
      bytes: bytes, start: line.start, minorVersion: line.minorVersion, fields: lines)
    let (fields, isRepeated) = try head.framing(by: reading)
    if fields.isChunked && head.minorVersion == 0 { throw .transferCodingInHTTP10 }
    let framing = framing(of: head.status, fields)
    let declaresBody = fields.isChunked || fields.contentLength ?? 0 > 0
    // A forbidden body may still come, and then the bytes that follow cannot be trusted.
    let mayHaveBody = head.status >= 200 && head.status != 204 || !declaresBody
    // Some backends send it also to HEAD and with 304, and none with 205.
    let isDisputed = declaresBody && (framing == .none || head.status == 205)
    let persists = fields.isPersistent(minorVersion: head.minorVersion) && framing != .untilClose
    return ResponseHead(
      head: head, framing: framing, keepAlive: persists && mayHaveBody && head.status != 101,
      hasCertainEnd: !isDoubtful && !isRepeated && !isDisputed)
  }

  /// The framing of the response's body (RFC 9112, section 6.3).
  private func framing(of status: Int, _ fields: FramingFields) -> ResponseHead.Framing {
    let isTunnel = method == .connect && 200..<300 ~= status
    if method == .head || isTunnel || status < 200 || status == 204 || status == 304 { return .none }
    if fields.isChunked { return .chunked }
    return fields.contentLength.map(ResponseHead.Framing.length) ?? .untilClose
  }
}

/// The head of a response, and the framing of its body.
public struct ResponseHead: Sendable {
  public enum Framing: Equatable, Sendable {
    /// There is no body, whatever the fields declare: a response to HEAD, a 2xx response to CONNECT, 1xx, 204 or 304.
    case none
    case length(Int)
    case chunked
    /// The body ends with the connection, so a truncated body cannot be detected.
    case untilClose
  }

  public var head: MessageHead
  public var framing: Framing
  /// Whether the connection persists for another request.
  public var keepAlive: Bool
  /// Whether every reader, and the backend itself, sees the same end of the response. Otherwise, what follows on the
  /// connection may still be a part of it.
  public var hasCertainEnd: Bool

  public init(head: MessageHead, framing: Framing, keepAlive: Bool, hasCertainEnd: Bool = true) {
    self.head = head
    self.framing = framing
    self.keepAlive = keepAlive
    self.hasCertainEnd = hasCertainEnd
  }

  /// Whether the final response is still to come: any 1xx except 101, which ends HTTP on the connection.
  public var isInterim: Bool { 100..<200 ~= head.status && head.status != 101 }
}

/// A parsed status line, `version SP status SP reason` (RFC 9112, section 4). Many servers omit the last space together
/// with the reason; that is accepted.
struct StatusLineParser {
  let start: MessageHead.StartLine
  let minorVersion: UInt8

  /// The status of a final response; `nil` for an interim one.
  var finalStatus: Int? {
    if case .status(let status, _) = start, status >= 200 { status } else { nil }
  }

  init(_ bytes: UnsafeRawBufferPointer, end: Int) throws(WireError) {
    guard end >= 12, bytes[8] == ASCII.space else { throw .badStatusLine }
    do throws(WireError) {
      minorVersion = try HTTPVersion.minor(bytes, 0, 8)
    } catch {
      throw .badStatusLine
    }
    let status = ASCII.decimal(UnsafeRawBufferPointer(rebasing: bytes[9..<12]))
    guard let status, 100...999 ~= status, end == 12 || bytes[12] == ASCII.space else { throw .badStatusLine }
    let reason = min(13, end)..<end
    guard FieldScanner.isValue(bytes, reason.lowerBound, reason.upperBound) else { throw .badStatusLine }
    start = .status(status, reason: reason)
  }
}

import NIOCore

/// Decodes requests from a client's bytes, strictly by RFC 9112. Performs no I/O.
///
/// Call `next` until it returns `nil`, and again when more bytes have been appended to the same buffer. Heads and pieces
/// of bodies are slices of that buffer, except small chunks, which are joined. After an error, every call throws the same
/// error.
public struct RequestDecoder: Sendable {
  public enum Event: Sendable {
    case head(RequestHead)
    /// A piece of the body, at least one byte long.
    case body(ByteBuffer)
    /// The message is complete, and the next call begins the next message. `trailers` holds the end-to-end field lines,
    /// each ended by CRLF.
    case end(trailers: ByteBuffer)
  }

  private enum State {
    /// Between messages, or within a head. Followed by `body` or `failed`.
    case head
    /// The head has been returned. Followed by `head` when the message ends, or by `failed`.
    case body
    case failed(WireError)
  }

  private var limits: HeadLimits
  private var state = State.head
  private var scanner: FieldScanner
  private var line: RequestLine?
  private var body: BodyDecoder
  private var emptyLines = 0

  public init(limits: HeadLimits = HeadLimits()) {
    self.limits = limits
    scanner = FieldScanner(limits: limits)
    body = BodyDecoder(.none, limits: limits)
  }

  /// Whether no byte of a next request has been scanned yet, so that the end of input is a regular one.
  public var isBetweenMessages: Bool {
    if case .head = state { scanner.isAtStart } else { false }
  }

  /// Replaces the limits between messages. Within a message, the call has no effect.
  public mutating func adopt(_ limits: HeadLimits) {
    guard isBetweenMessages else { return }
    self.limits = limits
    scanner = FieldScanner(limits: limits)
  }

  /// The next event; `nil` if more bytes are needed.
  public mutating func next(_ input: inout ByteBuffer) throws(WireError) -> Event? {
    do throws(WireError) {
      switch state {
      case .head:
        return try head(&input)
      case .body:
        let part = try body.next(&input)
        if case .end = part { state = .head }
        return part.map(Event.init)
      case .failed(let error):
        throw error
      }
    } catch {
      state = .failed(error)
      throw error
    }
  }

  private mutating func head(_ input: inout ByteBuffer) throws(WireError) -> Event? {
    if scanner.isAtStart, try !skipEmptyLines(&input) { return nil }
    let length = try input.withUnsafeReadableBytes { bytes throws(WireError) -> Int? in
      if line == nil {
        guard let end = try scanner.startLine(in: bytes) else { return nil }
        line = try RequestLine(bytes, end: end)
      }
      return try scanner.section(in: bytes)
    }
    guard let length, let line, var bytes = input.readSlice(length: length) else { return nil }
    let fields = scanner.takeFields(of: &bytes)
    let request = try request(line, bytes, fields)
    self.line = nil
    emptyLines = 0
    body = BodyDecoder(request.framing, limits: limits)
    state = .body
    return .head(request)
  }

  private func request(
    _ line: RequestLine, _ bytes: ByteBuffer, _ fields: [MessageHead.Field]
  ) throws(WireError) -> RequestHead {
    let head = MessageHead(
      bytes: bytes, start: line.start, minorVersion: line.minorVersion, fields: fields)
    let framing = try bytes.withUnsafeReadableBytes { bytes throws(WireError) in
      try FramingFields(head.fields, in: bytes)
    }
    if framing.hosts > 1 { throw .repeatedHost }
    if framing.hosts == 0 && head.minorVersion >= 1 { throw .missingHost }
    if framing.isChunked && head.minorVersion == 0 { throw .transferCodingInHTTP10 }
    return RequestHead(
      head: head,
      framing: framing.isChunked ? .chunked : framing.contentLength.map(BodyFraming.length) ?? .none,
      keepAlive: framing.isPersistent(minorVersion: head.minorVersion),
      expectsContinue: framing.expectsContinue && head.minorVersion >= 1)
  }

  /// Skips empty lines before the request line; false if the input may be the first half of another one.
  private mutating func skipEmptyLines(_ input: inout ByteBuffer) throws(WireError) -> Bool {
    while input.getInteger(at: input.readerIndex, as: UInt8.self) == ASCII.carriageReturn {
      guard let second = input.getInteger(at: input.readerIndex + 1, as: UInt8.self) else {
        return false
      }
      emptyLines += 1
      guard second == ASCII.lineFeed, emptyLines <= HeadLimits.emptyLines else { throw .badLineEnd }
      input.moveReaderIndex(forwardBy: 2)
    }
    return true
  }
}

extension RequestDecoder.Event {
  fileprivate init(_ part: BodyDecoder.Part) {
    self =
      switch part {
      case .piece(let bytes): .body(bytes)
      case .end(let trailers): .end(trailers: trailers)
      }
  }
}

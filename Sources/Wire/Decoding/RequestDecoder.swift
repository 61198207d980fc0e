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

/// The head of a request, and its consequences for the connection.
public struct RequestHead: Sendable {
  public var head: MessageHead
  public var framing: BodyFraming
  /// Whether the connection persists for another request.
  public var keepAlive: Bool
  /// Whether the client waits for a `100 Continue` before it sends the body.
  public var expectsContinue: Bool

  public init(head: MessageHead, framing: BodyFraming, keepAlive: Bool, expectsContinue: Bool) {
    self.head = head
    self.framing = framing
    self.keepAlive = keepAlive
    self.expectsContinue = expectsContinue
  }

  /// Whether bytes of a body may follow. If not, the next event is `end`, and it is available at once.
  public var hasBody: Bool { !framing.isEmpty }
}

/// The framing of a request's body, which determines its end.
public enum BodyFraming: Equatable, Sendable {
  /// There is no body, and no `Content-Length`.
  case none
  /// The length that `Content-Length` declares, in bytes; may be 0.
  case length(Int)
  /// Chunks, whose total length is not known beforehand.
  case chunked

  /// Whether nothing follows the head.
  public var isEmpty: Bool { self == .none || self == .length(0) }
}

/// A parsed request line, `method SP target SP version` (RFC 9112, section 3), with exactly one space at each place.
struct RequestLine {
  let start: MessageHead.StartLine
  let minorVersion: UInt8

  init(_ bytes: UnsafeRawBufferPointer, end: Int) throws(WireError) {
    var at = 0
    while at < min(end, HeadLimits.methodBytes), ASCII.isTokenByte(bytes[at]) { at += 1 }
    guard at < end, bytes[at] == ASCII.space else { throw .badMethod }
    guard at > 0 else { throw .badRequestLine }
    let method = 0..<at
    let targetStart = at + 1
    at = targetStart
    var seen: UInt8 = 0
    while at < end, Self.isTargetByte(bytes[at]) {
      seen |= bytes[at]
      at += 1
    }
    guard at < end else { throw .badRequestLine }
    guard at > targetStart, bytes[at] == ASCII.space else { throw .badTarget }
    let known = MessageHead.Method(UnsafeRawBufferPointer(rebasing: bytes[method]))
    minorVersion = try HTTPVersion.minor(bytes, at + 1, end)
    let target = targetStart..<at
    if seen >= 0x80 { try Self.checkUTF8(UnsafeRawBufferPointer(rebasing: bytes[target])) }
    _ = try TargetForm(UnsafeRawBufferPointer(rebasing: bytes[target]), method: known)
    start = .request(method: known, methodRange: method, target: target)
  }

  /// Whether the byte is visible ASCII other than `#`, since a fragment is never sent (RFC 9110, section 4.2.5), or one
  /// of UTF-8, which many clients send as it is.
  private static func isTargetByte(_ byte: UInt8) -> Bool {
    byte &- 0x21 < 0x5E && byte != 0x23 || byte >= 0x80
  }

  /// Refuses other bytes than UTF-8, and the replacement character: it stands for bytes that a codec has lost.
  private static func checkUTF8(_ target: UnsafeRawBufferPointer) throws(WireError) {
    let isValid = target.withMemoryRebound(to: UInt8.self) { bytes in
      (try? UTF8Span(validating: bytes.span)) != nil
    }
    guard isValid else { throw .badTarget }
    for at in target.indices.dropLast(2) where target[at] == 0xEF && target[at + 1] == 0xBF {
      guard target[at + 2] != 0xBD else { throw .badTarget }
    }
  }
}

/// The version of HTTP in a start line.
enum HTTPVersion {
  /// The minor version of `HTTP/1.0` or `HTTP/1.1`, which must fill the range.
  static func minor(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ end: Int) throws(WireError) -> UInt8 {
    guard end - start == 8 else { throw .badRequestLine }
    // "HTTP/1." as a little-endian number; the eighth byte is the minor version.
    let word = UInt64(littleEndian: Word.load(bytes, start))
    let digit = UInt8(truncatingIfNeeded: word >> 56)
    if word & 0x00FF_FFFF_FFFF_FFFF == 0x002E_312F_5054_5448, digit == 0x30 || digit == 0x31 {
      return digit - 0x30
    }
    let isVersion =
      word & 0x00FF_00FF_FFFF_FFFF == 0x002E_002F_5054_5448 && ASCII.isDigit(digit)
      && ASCII.isDigit(bytes[start + 5])
    throw isVersion ? .unsupportedVersion : .badRequestLine
  }
}

extension MessageHead.Method {
  /// Recognises a method. Methods are case-sensitive (RFC 9110, section 9.1).
  public init(_ bytes: UnsafeRawBufferPointer) {
    var word: UInt64 = 0
    if bytes.count <= 8 {
      for byte in bytes { word = word << 8 | UInt64(byte) }
    }
    self =
      switch word {
      case 0x0047_4554: .get
      case 0x4845_4144: .head
      case 0x504F_5354: .post
      case 0x0050_5554: .put
      case 0x50_4154_4348: .patch
      case 0x4445_4C45_5445: .delete
      case 0x4F_5054_494F_4E53: .options
      case 0x54_5241_4345: .trace
      case 0x43_4F4E_4E45_4354: .connect
      default: .other
      }
  }
}

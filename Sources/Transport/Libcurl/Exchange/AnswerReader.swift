import Glibc
import NIOCore
import Wire

/// Puts an answer together from the lines and pieces that libcurl hands out, and knows when it is whole.
///
/// Pure. libcurl undoes the chunks and counts the length; what it takes generously and others would read in another
/// way is refused here.
struct AnswerReader {
  /// How the end of the body is told (RFC 9112, section 6.3).
  enum Framing: Equatable {
    case bodyless, length(Int), chunked, close
  }

  private let isAnswerToHead: Bool
  private var bytes = ByteBuffer()
  private var fields: [MessageHead.Field] = []
  private var start: (status: Int, reason: Range<Int>, minorVersion: UInt8)?
  private var contentLength: Int?
  private var isChunked = false
  private var received = 0
  private var hasEnded = false

  /// The final head, once its last line has come.
  private(set) var head: MessageHead?
  /// The interim answer (1xx) whose last line was the one taken last, but 100.
  private(set) var interim: MessageHead?
  /// Of the final head; meaningless before.
  private(set) var framing = Framing.close
  /// Trailer lines, each ended by CRLF.
  private(set) var trailers = ByteBuffer()

  init(isAnswerToHead: Bool) { self.isAnswerToHead = isAnswerToHead }

  /// Whether every byte of the answer has come.
  var isWhole: Bool {
    guard head != nil else { return false }
    return switch framing {
    case .bodyless: true
    case .length(let length): received == length
    case .chunked, .close: hasEnded
    }
  }

  /// Takes one line with its end: of the head, or of the trailers.
  mutating func take(line: UnsafeRawBufferPointer) throws(AnswerFault) {
    let line = try Self.withoutEnd(line)
    interim = nil
    if head != nil {
      try takeTrailer(line)
    } else if start == nil {
      try takeStatus(line)
    } else if line.isEmpty {
      try finishHead()
    } else {
      try takeField(line)
    }
  }

  /// Counts a piece of the body.
  mutating func take(body count: Int) throws(AnswerFault) {
    received += count
    guard head != nil else { throw AnswerFault("a body came without a head") }
    guard framing != .bodyless else { throw AnswerFault("a body came where there is none") }
    if case .length(let length) = framing, received > length {
      throw AnswerFault("the body is longer than its length")
    }
  }

  /// libcurl saw the end: the last chunk, or the end of the connection.
  mutating func finish() throws(AnswerFault) {
    guard head != nil else { throw AnswerFault("the connection ended within the head") }
    if case .length(let length) = framing, received < length {
      throw AnswerFault("the connection ended before the body did")
    }
    hasEnded = true
  }
}

extension AnswerReader {
  private static func withoutEnd(_ line: UnsafeRawBufferPointer) throws(AnswerFault) -> UnsafeRawBufferPointer
  {
    var count = line.count
    if count > 0, line[count - 1] == 0x0A { count -= 1 }
    if count > 0, line[count - 1] == 0x0D { count -= 1 }
    let line = UnsafeRawBufferPointer(rebasing: line[..<count])
    guard position(of: 0x0D, in: line) == nil, position(of: 0, in: line) == nil else {
      throw AnswerFault("a line holds a control byte")
    }
    return line
  }

  private mutating func takeStatus(_ line: UnsafeRawBufferPointer) throws(AnswerFault) {
    // "HTTP/1.x NNN", and where there is a reason a space and that.
    guard line.count >= 12, Self.isVersionOne(line),
      let status = Self.number(UnsafeRawBufferPointer(rebasing: line[9..<12])), status >= 100,
      line.count == 12 || line[12] == 0x20
    else { throw AnswerFault("the status line is malformed") }
    bytes = ByteBufferAllocator().buffer(capacity: 512)
    fields.reserveCapacity(16)
    bytes.writeBytes(line)
    start = (status, min(13, line.count)..<line.count, line[7] - 0x30)
    bytes.writeStaticString("\r\n")
  }

  private static func isVersionOne(_ line: UnsafeRawBufferPointer) -> Bool {
    line.starts(with: "HTTP/1.".utf8) && (line[7] == 0x30 || line[7] == 0x31) && line[8] == 0x20
  }

  private mutating func takeField(_ line: UnsafeRawBufferPointer) throws(AnswerFault) {
    let field = try append(line)
    let value = UnsafeRawBufferPointer(
      rebasing: line[Self.valueRange(of: line, after: Int(field.nameLength))])
    switch field.name {
    case .contentLength:
      guard let length = Self.number(value), contentLength == nil || contentLength == length else {
        throw AnswerFault("the Content-Length is malformed")
      }
      contentLength = length
    case .transferEncoding:
      guard !isChunked, start?.minorVersion == 1, ASCII.equalsIgnoringCase(value, "chunked") else {
        throw AnswerFault("the Transfer-Encoding is not understood")
      }
      isChunked = true
    default: break
    }
    fields.append(field)
  }

  /// Writes a field line and says where it stands. Folded lines have no name, so they are refused.
  private mutating func append(_ line: UnsafeRawBufferPointer) throws(AnswerFault) -> MessageHead.Field {
    guard let colon = Self.position(of: 0x3A, in: line), colon > 0, colon <= Int(UInt16.max),
      line[..<colon].allSatisfy(ASCII.isTokenByte)
    else { throw AnswerFault("a field's name is malformed") }
    let value = Self.valueRange(of: line, after: colon)
    let start = bytes.writerIndex
    bytes.writeBytes(line)
    bytes.writeStaticString("\r\n")
    return MessageHead.Field(
      nameStart: start, nameLength: UInt16(colon), valueStart: start + value.lowerBound,
      valueLength: value.count, name: .recognise(UnsafeRawBufferPointer(rebasing: line[..<colon])))
  }

  private mutating func finishHead() throws(AnswerFault) {
    guard let start else { return }
    guard start.status != 101 else { throw AnswerFault("the backend switched protocols unasked") }
    guard start.status >= 200 else { return passOver() }
    guard !isChunked || contentLength == nil else { throw AnswerFault("the answer has two lengths") }
    if isAnswerToHead || start.status == 204 || start.status == 304 {
      framing = .bodyless
    } else if isChunked {
      framing = .chunked
    } else {
      framing = contentLength.map(Framing.length) ?? .close
    }
    bytes.writeStaticString("\r\n")
    head = MessageHead(
      bytes: bytes, start: .status(start.status, reason: start.reason), minorVersion: start.minorVersion,
      fields: fields)
    bytes = ByteBuffer()
    fields = []
  }

  /// Puts an interim answer aside.
  private mutating func passOver() {
    if let start, start.status != 100 {
      bytes.writeStaticString("\r\n")
      interim = MessageHead(
        bytes: bytes, start: .status(start.status, reason: start.reason), minorVersion: start.minorVersion,
        fields: fields)
    }
    fields.removeAll(keepingCapacity: true)
    start = nil
    contentLength = nil
    isChunked = false
  }

  private mutating func takeTrailer(_ line: UnsafeRawBufferPointer) throws(AnswerFault) {
    guard !line.isEmpty else { return }
    swap(&bytes, &trailers)
    defer { swap(&bytes, &trailers) }
    _ = try append(line)
  }

  /// Where the value stands in a field line, without the white space around it.
  private static func valueRange(of line: UnsafeRawBufferPointer, after colon: Int) -> Range<Int> {
    var start = colon + 1
    var end = line.count
    while start < end, line[start] == 0x20 || line[start] == 0x09 { start += 1 }
    while start < end, line[end - 1] == 0x20 || line[end - 1] == 0x09 { end -= 1 }
    return start..<end
  }

  private static func position(of byte: Int32, in line: UnsafeRawBufferPointer) -> Int? {
    guard let start = line.baseAddress, let found = memchr(start, byte, line.count) else { return nil }
    return UnsafeRawPointer(found) - start
  }

  /// A number of digits alone, at most eighteen: what fits.
  private static func number(_ digits: UnsafeRawBufferPointer) -> Int? {
    guard !digits.isEmpty, digits.count <= 18 else { return nil }
    var number = 0
    for digit in digits {
      guard digit &- 0x30 < 10 else { return nil }
      number = number * 10 + Int(digit - 0x30)
    }
    return number
  }
}

import NIOCore

extension ResponseHead {
  /// The head of an answer of HTTP/2 (RFC 9113, section 8.3.2) in the form of one of HTTP/1.1. Its body ends with its
  /// stream, which `chunked` stands for where no length is told.
  ///
  /// A refused answer is an outcome unknown, so values are read more generously than a stranger's: white space around
  /// one is taken off, and bytes that are no UTF-8 pass as the decoder replaced them.
  ///
  /// - Parameters:
  ///   - fields: as they were decoded, `:status` first.
  ///   - isEnd: whether the stream ends with it.
  ///   - method: that of the request.
  public init(
    http2 fields: [(name: String, value: String)], isEnd: Bool, method: MessageHead.Method, limits: HeadLimits
  ) throws(WireError) {
    try HTTP2Fields.checkSize(fields, limits: limits)
    guard let first = fields.first, first.name == ":status", let status = Self.status(first.value),
      status >= 200 || !isEnd
    else { throw .badStatusLine }
    var head = MessageHead(status: status)
    head.fields.reserveCapacity(fields.count)
    try head.append(answerFields: fields.dropFirst())
    head.bytes.writeStaticString("\r\n")
    let said = try head.bytes.withUnsafeReadableBytes { bytes throws(WireError) in
      try FramingFields(head.fields, in: bytes)
    }
    let hasNoBody = method == .head || status < 200 || status == 204 || status == 304
    self.init(
      head: head, framing: hasNoBody ? .none : said.contentLength.map(Framing.length) ?? .chunked,
      keepAlive: true)
  }

  /// Three digits. Protocols are not switched in HTTP/2.
  private static func status(_ text: String) -> Int? {
    guard text.utf8.count == 3, text.utf8.allSatisfy({ $0 &- 0x30 < 10 }), let status = Int(text),
      status >= 100, status != 101
    else { return nil }
    return status
  }
}

extension HTTP2Trailers {
  /// Those of an answer, by the rules of those of a request, but for the values: see `ResponseHead`.
  public static func answerLines(
    _ fields: [(name: String, value: String)], limits: HeadLimits
  ) throws(WireError) -> ByteBuffer {
    try HTTP2Fields.checkSize(fields, limits: limits)
    var section = MessageHead(start: .status(0, reason: 0..<0))
    try section.append(answerFields: fields[...])
    return try Trailers.lines(section.fields, in: section.bytes, ofResponse: true)
  }
}

extension MessageHead {
  /// An answer's head that is made. HTTP/2 has no reason phrase.
  fileprivate init(status: Int) {
    var bytes = ByteBufferAllocator().buffer(capacity: 512)
    bytes.writeStaticString("HTTP/1.1 ")
    bytes.writeString(String(status))
    bytes.writeStaticString(" ")
    let reason = bytes.writerIndex
    bytes.writeStaticString("\r\n")
    self.init(bytes: bytes, start: .status(status, reason: reason..<reason), minorVersion: 1, fields: [])
  }

  fileprivate mutating func append(
    answerFields fields: ArraySlice<(name: String, value: String)>
  ) throws(WireError) {
    for (name, value) in fields {
      try HTTP2Fields.check(name: name)
      try append(name: name, value: Self.trimmed(value))
    }
  }

  private static func trimmed(_ value: String) -> Substring {
    var value = Substring(value).unicodeScalars
    while value.first == " " || value.first == "\t" { value.removeFirst() }
    while value.last == " " || value.last == "\t" { value.removeLast() }
    return Substring(value)
  }
}

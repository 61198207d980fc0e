import NIOCore

extension ResponseHead {
  /// Creates the head of an HTTP/2 response (RFC 9113, section 8.3.2) in the form of HTTP/1.1. The body ends with its
  /// stream; without a declared length its framing is `chunked`.
  ///
  /// It is read tolerantly (`Reading`): equal lengths are one, white space around a value is removed, and bytes that are
  /// not UTF-8 pass as the decoder replaced them.
  ///
  /// - Parameters:
  ///   - fields: The decoded fields, `:status` first.
  ///   - isEnd: Whether the stream ends with this head.
  ///   - method: The method of the request.
  public init(
    http2 fields: [(name: String, value: String)], isEnd: Bool, method: MessageHead.Method, limits: HeadLimits
  ) throws(WireError) {
    try HTTP2Fields.checkSize(fields, limits: limits)
    guard let first = fields.first, first.name == ":status", let status = Self.status(first.value),
      status >= 200 || !isEnd
    else { throw .badStatusLine }
    var head = MessageHead(status: status)
    head.fields.reserveCapacity(fields.count)
    try head.append(responseFields: fields.dropFirst())
    head.bytes.writeLiteral("\r\n")
    let framing = try head.framing(by: .tolerant).fields
    let hasNoBody = method == .head || status < 200 || status == 204 || status == 304
    self.init(
      head: head, framing: hasNoBody ? .none : framing.contentLength.map(Framing.length) ?? .chunked,
      keepAlive: true)
  }

  /// The status that a block of fields states for a final response; `nil` if it states none, or several.
  public static func finalStatus(http2 fields: [(name: String, value: String)]) -> Int? {
    guard let first = fields.first, first.name == ":status", let status = status(first.value),
      !fields.dropFirst().contains(where: { $0.name == ":status" })
    else { return nil }
    return status >= 200 ? status : nil
  }

  /// The status code; `nil` unless it has three digits. 101 is refused, because HTTP/2 does not switch protocols.
  private static func status(_ text: String) -> Int? {
    guard text.utf8.count == 3, text.utf8.allSatisfy({ $0 &- 0x30 < 10 }), let status = Int(text),
      status >= 100, status != 101
    else { return nil }
    return status
  }
}

extension HTTP2Trailers {
  /// The field lines of a response's trailers to forward. The rules are those for a request, but values are checked
  /// less strictly, as in `ResponseHead`.
  public static func responseLines(
    _ fields: [(name: String, value: String)], limits: HeadLimits
  ) throws(WireError) -> ByteBuffer {
    try HTTP2Fields.checkSize(fields, limits: limits)
    var section = MessageHead(start: .status(0, reason: 0..<0))
    try section.append(responseFields: fields[...])
    return try Trailers.lines(section.fields, in: section.bytes, ofResponse: true)
  }
}

extension MessageHead {
  /// Creates the head of a response without fields. HTTP/2 has no reason phrase.
  fileprivate init(status: Int) {
    var bytes = ByteBufferAllocator().buffer(capacity: 512)
    bytes.writeLiteral("HTTP/1.1 ")
    bytes.writeString(String(status))
    bytes.writeLiteral(" ")
    let reason = bytes.writerIndex
    bytes.writeLiteral("\r\n")
    self.init(bytes: bytes, start: .status(status, reason: reason..<reason), minorVersion: 1, fields: [])
  }

  fileprivate mutating func append(
    responseFields fields: ArraySlice<(name: String, value: String)>
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

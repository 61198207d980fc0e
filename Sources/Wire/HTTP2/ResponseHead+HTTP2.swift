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

extension RequestHead {
  /// Creates the head of an HTTP/2 request (RFC 9113, section 8.3) in the form of HTTP/1.1, so that routing,
  /// fingerprints and forwarding need not know the version.
  ///
  /// `:authority` becomes `Host`, and the pieces of a divided `Cookie` become one field.
  ///
  /// - Parameters:
  ///   - fields: The decoded fields, pseudo-header fields first.
  ///   - isEnd: Whether the request has no body.
  public init(
    http2 fields: [(name: String, value: String)], isEnd: Bool, limits: HeadLimits = HeadLimits()
  ) throws(WireError) {
    try HTTP2Fields.checkSize(fields, limits: limits)
    let pseudo = try PseudoFields(fields)
    guard pseudo.lineBytes <= limits.lineBytes else { throw .targetTooLong }
    var head = try MessageHead(method: pseudo.method, target: pseudo.target)
    var cookies: [String] = []
    head.fields.reserveCapacity(fields.count)
    let host = try pseudo.host(with: fields)
    try HTTP2Fields.checkLine(name: "Host", value: host, limits: limits)
    head.append("Host", host, as: .host)
    for (name, value) in fields.dropFirst(pseudo.count) {
      try HTTP2Fields.checkLine(name: name, value: value, limits: limits)
      try HTTP2Fields.check(name: name, value: value)
      switch name {
      case "host": break
      case "cookie": cookies.append(value)
      default: try head.append(name: name, value: value)
      }
    }
    if !cookies.isEmpty {
      // An empty piece at the end would leave a space at the end of the value, which no value in HTTP/1.1 has.
      let cookie = cookies.filter { !$0.isEmpty }.joined(separator: "; ")
      try HTTP2Fields.checkLine(name: "cookie", value: cookie, limits: limits)
      try head.append(name: "cookie", value: cookie)
    }
    let fields = try head.bytes.withUnsafeReadableBytes { bytes throws(WireError) in
      try FramingFields(head.fields, in: bytes)
    }
    self.init(
      head: head, framing: try Self.framing(by: fields.contentLength, isEnd: isEnd), keepAlive: true,
      expectsContinue: fields.expectsContinue && !isEnd)
  }

  private static func framing(by length: Int?, isEnd: Bool) throws(WireError) -> BodyFraming {
    guard let length else { return isEnd ? .none : .chunked }
    guard length == 0 || !isEnd else { throw .badContentLength }
    return .length(length)
  }
}

/// The pseudo-header fields of an HTTP/2 request, which correspond to the request line of HTTP/1.1.
private struct PseudoFields {
  let method: String
  let target: String
  let authority: String?
  /// The number of pseudo-header fields. The other fields follow them.
  let count: Int

  /// The length of the request line in HTTP/1.1, with its end, in bytes.
  var lineBytes: Int { method.utf8.count + target.utf8.count + "  HTTP/1.1\r\n".utf8.count }

  /// Returns the request's host: `:authority`, else the `host` field.
  ///
  /// - Parameter fields: All fields of the request.
  func host(with fields: [(name: String, value: String)]) throws(WireError) -> String {
    var host: String?
    for (name, value) in fields.dropFirst(count) where name == "host" {
      guard host == nil else { throw .repeatedHost }
      host = value
    }
    // If the two differ, readers of one and readers of the other see different hosts.
    if let host, let authority {
      guard host.utf8.count <= HeadLimits.hostBytes, host.utf8.count == authority.utf8.count,
        host.lowercased() == authority.lowercased()
      else {
        throw .badHost
      }
    }
    guard let host = authority ?? host else { throw .missingHost }
    return host
  }

  init(_ fields: [(name: String, value: String)]) throws(WireError) {
    var method: String?
    var scheme: String?
    var path: String?
    var authority: String?
    var count = 0
    for (name, value) in fields {
      guard name.utf8.first == ASCII.colon else { break }
      count += 1
      switch name {
      case ":method": try Self.set(&method, value)
      case ":scheme": try Self.set(&scheme, value)
      case ":path": try Self.set(&path, value)
      case ":authority": try Self.set(&authority, value)
      default: throw .badPseudoField
      }
    }
    guard let method else { throw .badPseudoField }
    if method == "CONNECT" {
      guard scheme == nil, path == nil, let authority else { throw .badPseudoField }
      target = authority
    } else {
      guard let path, scheme == "http" || scheme == "https" else { throw .badPseudoField }
      guard path.utf8.first == UInt8(ascii: "/") || path == "*" else { throw .badTarget }
      target = path
    }
    self.method = method
    self.authority = authority
    self.count = count
  }

  private static func set(_ target: inout String?, _ value: String) throws(WireError) {
    guard target == nil else { throw .badPseudoField }
    target = value
  }
}

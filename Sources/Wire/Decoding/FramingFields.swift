/// The fields of a head that concern framing, connection and host, each checked to be unique and unambiguous.
///
/// Request smuggling needs two readers that understand one head differently, so a head that can be read in two ways is
/// refused (RFC 9112, sections 6.1, 6.3 and 11.2).
struct FramingFields {
  private(set) var contentLength: Int?
  private(set) var isChunked = false
  private(set) var hosts = 0
  private(set) var closes = false
  private(set) var keepsAlive = false
  private(set) var expectsContinue = false
  private var connectionOptions = 0

  init(
    _ fields: [MessageHead.Field], in bytes: UnsafeRawBufferPointer, reading: Reading = .strict
  ) throws(WireError) {
    for field in fields {
      switch field.name {
      case .contentLength:
        guard reading == .tolerant || Self.hasNoTabs(around: field, in: bytes) else {
          throw .badContentLength
        }
        try read(field.name, UnsafeRawBufferPointer(rebasing: bytes[field.valueRange]))
      case .transferEncoding:
        guard reading == .tolerant || Self.hasNoTabs(around: field, in: bytes) else {
          throw .badTransferCoding
        }
        try read(field.name, UnsafeRawBufferPointer(rebasing: bytes[field.valueRange]))
      case .host, .connection, .expect:
        try read(field.name, UnsafeRawBufferPointer(rebasing: bytes[field.valueRange]))
      default:
        break
      }
    }
    if contentLength != nil && isChunked { throw .lengthAndTransferCoding }
  }

  /// Whether the white space around the value consists of spaces alone.
  ///
  /// Tabs are allowed there, but not every reader removes them, and a reader that does not sees another framing.
  private static func hasNoTabs(around field: MessageHead.Field, in bytes: UnsafeRawBufferPointer) -> Bool {
    if bytes[field.nameRange.upperBound..<field.valueRange.lowerBound].contains(ASCII.tab) { return false }
    var at = field.valueRange.upperBound
    while bytes[at] == ASCII.space { at += 1 }
    return bytes[at] == ASCII.carriageReturn
  }

  private mutating func read(_ name: FieldName, _ value: UnsafeRawBufferPointer) throws(WireError) {
    switch name {
    case .contentLength:
      guard contentLength == nil else { throw .repeatedContentLength }
      guard let length = ASCII.decimal(value) else { throw .badContentLength }
      contentLength = length
    case .transferEncoding:
      try transferCoding(value)
    case .host:
      hosts += 1
      _ = try Authority(value)
    case .connection:
      try connection(value)
    default:
      if ASCII.equalsIgnoringCase(value, "100-continue") { expectsContinue = true }
    }
  }

  /// Accepts `chunked`, once and alone. With another coding before it, the end of the body is known but not its form;
  /// without `chunked` as the last coding, not even its end (RFC 9112, section 6.3).
  private mutating func transferCoding(_ value: UnsafeRawBufferPointer) throws(WireError) {
    guard !isChunked else { throw .badTransferCoding }
    if ASCII.equalsIgnoringCase(value, "chunked") {
      isChunked = true
      return
    }
    var chunked = 0
    var isChunkedLast = false
    var count = 0
    var codings = ListElements(value)
    while let coding = codings.next() {
      isChunkedLast = ASCII.equalsIgnoringCase(coding, "chunked")
      chunked += isChunkedLast ? 1 : 0
      count += 1
    }
    throw !codings.isCut && isChunkedLast && chunked == 1 && count > 1
      ? .unknownTransferCoding : .badTransferCoding
  }

  private mutating func connection(_ value: UnsafeRawBufferPointer) throws(WireError) {
    var options = ListElements(value)
    while let option = options.next() {
      connectionOptions += 1
      guard connectionOptions <= HeadLimits.connectionOptions, option.allSatisfy(ASCII.isTokenByte) else {
        throw .badConnection
      }
      if ASCII.equalsIgnoringCase(option, "close") {
        closes = true
      } else if ASCII.equalsIgnoringCase(option, "keep-alive") {
        keepsAlive = true
      }
    }
    guard !options.isCut else { throw .badConnection }
  }

  /// Whether the connection persists after this message: by default in HTTP/1.1, only with `keep-alive` in HTTP/1.0.
  func isPersistent(minorVersion: UInt8) -> Bool {
    !closes && (minorVersion >= 1 || keepsAlive)
  }
}

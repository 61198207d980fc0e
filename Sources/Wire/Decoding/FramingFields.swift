import NIOCore

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

extension MessageHead {
  /// The framing of a response, and whether the head repeats it.
  ///
  /// The tolerant reading makes one field of several that state the same, so that only one is forwarded and recorded.
  mutating func framing(by reading: Reading) throws(WireError) -> (fields: FramingFields, isRepeated: Bool) {
    do throws(WireError) {
      return (try framingFields(by: reading), false)
    } catch {
      guard reading == .tolerant, mergeRepeatedFraming() else { throw error }
      return (try framingFields(by: reading), true)
    }
  }

  private func framingFields(by reading: Reading) throws(WireError) -> FramingFields {
    try bytes.withUnsafeReadableBytes { bytes throws(WireError) in
      try FramingFields(fields, in: bytes, reading: reading)
    }
  }

  /// Makes one field of equal lengths, in several lines or in a list, and one of equal lines `Transfer-Encoding:
  /// chunked`. Returns false, and changes nothing, where they differ.
  private mutating func mergeRepeatedFraming() -> Bool {
    let lengths = fields.indices.filter { fields[$0].name == .contentLength }
    let codings = fields.indices.filter { fields[$0].name == .transferEncoding }
    guard let length = commonLength(lengths), areChunked(codings) else { return false }
    if let first = lengths.first {
      fields[first].valueStart = UInt32(truncatingIfNeeded: length.lowerBound)
      fields[first].valueLength = UInt32(truncatingIfNeeded: length.count)
    }
    for index in (lengths.dropFirst() + codings.dropFirst()).sorted(by: >) { fields.remove(at: index) }
    return true
  }

  /// The position of the first of the numbers in these fields; `nil` if they differ. Empty if there are no fields.
  private func commonLength(_ lengths: [Int]) -> Range<Int>? {
    var common: (number: Int, range: Range<Int>)?
    for index in lengths {
      let value = fields[index].valueRange
      let isCommon = withBytes(value) { bytes in
        bytes.split(separator: ASCII.comma, omittingEmptySubsequences: false).allSatisfy { element in
          let element = Self.trimmed(element)
          guard let number = ASCII.decimal(UnsafeRawBufferPointer(rebasing: element)) else { return false }
          if let common { return common.number == number }
          common = (
            number, value.lowerBound + element.startIndex..<value.lowerBound + element.endIndex
          )
          return true
        }
      }
      guard isCommon else { return nil }
    }
    return common?.range ?? 0..<0
  }

  private func areChunked(_ codings: [Int]) -> Bool {
    codings.allSatisfy { index in
      withBytes(fields[index].valueRange) { ASCII.equalsIgnoringCase($0, "chunked") }
    }
  }
}

/// The terms on which a server keeps its connection for further requests, as `Keep-Alive: timeout=5, max=100` states
/// them (RFC 2068, section 19.7.1.1).
public struct KeepAliveTerms: Equatable, Sendable {
  /// The time for which the server keeps the connection without a request, in seconds; `nil` if it is not stated.
  public var timeout: Int?
  /// The number of further requests that the server takes on the connection; `nil` if it is not stated.
  public var max: Int?

  public init(timeout: Int? = nil, max: Int? = nil) {
    self.timeout = timeout
    self.max = max
  }

  /// Reads the terms of a response. Parameters that are unknown or no number are skipped, and of two the smaller one
  /// counts.
  public init(of head: MessageHead) {
    self.init()
    head.readList(of: FieldNameSet(.keepAlive)) { element in
      read(element)
      return true
    }
  }

  private mutating func read(_ element: UnsafeRawBufferPointer) {
    guard let sign = ASCII.index(of: 0x3D, in: element, 0..<element.count) else { return }
    let name = UnsafeRawBufferPointer(rebasing: MessageHead.trimmed(element[..<sign]))
    let value = UnsafeRawBufferPointer(rebasing: MessageHead.trimmed(element[(sign + 1)...]))
    guard let number = ASCII.decimal(value) else { return }
    if ASCII.equalsIgnoringCase(name, "timeout") {
      timeout = Swift.min(timeout ?? number, number)
    } else if ASCII.equalsIgnoringCase(name, "max") {
      max = Swift.min(max ?? number, number)
    }
  }
}

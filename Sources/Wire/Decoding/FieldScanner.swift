import Glibc
import NIOCore

/// Reads a start line and field lines up to the empty line, and resumes where it ran out of bytes.
///
/// Each line is parsed once, when its line feed has arrived, and the search for the line feed resumes where it ended.
/// So the result depends on the bytes alone, never on how they were divided, and bytes that arrive one by one cost no
/// more than a whole head.
struct FieldScanner {
  private let limits: HeadLimits
  private(set) var fields: [MessageHead.Field] = []
  /// The offset of the first line that is not parsed yet.
  private var lineStart = 0
  /// The offset up to which the unfinished line contains no line feed.
  private var scanned = 0

  init(limits: HeadLimits) {
    self.limits = limits
  }

  /// Whether no byte of the section has been scanned yet.
  var isAtStart: Bool { scanned == 0 }

  /// Returns the fields found and resets the scanner for another section.
  mutating func takeFields() -> [MessageHead.Field] {
    var taken: [MessageHead.Field] = []
    swap(&taken, &fields)
    lineStart = 0
    scanned = 0
    return taken
  }

  /// The offset of the CR that ends the first line, the start line; `nil` if more bytes are needed.
  mutating func startLine(in bytes: UnsafeRawBufferPointer) throws(WireError) -> Int? {
    try nextLine(in: bytes, orElse: .targetTooLong)
  }

  /// Parses field lines and returns the length of the whole section with its empty line; `nil` if more bytes are
  /// needed.
  mutating func section(in bytes: UnsafeRawBufferPointer) throws(WireError) -> Int? {
    while true {
      let start = lineStart
      guard let end = try nextLine(in: bytes, orElse: .headTooLarge) else { return nil }
      if end == start { return end + 2 }
      try field(in: bytes, start, end)
    }
  }

  /// Steps over the next line and returns the offset of its CR; `nil` if more bytes are needed.
  private mutating func nextLine(
    in bytes: UnsafeRawBufferPointer, orElse tooLong: WireError
  ) throws(WireError) -> Int? {
    let limit = min(bytes.count, limits.headBytes)
    guard scanned < limit, let base = bytes.baseAddress,
      let found = memchr(base + scanned, Int32(ASCII.lineFeed), limit - scanned)
    else {
      if bytes.count >= limits.headBytes || limit - lineStart >= limits.lineBytes { throw tooLong }
      scanned = limit
      return nil
    }
    let feed = UnsafeRawPointer(found) - base
    guard feed - lineStart < limits.lineBytes else { throw tooLong }
    guard feed > lineStart, bytes[feed - 1] == ASCII.carriageReturn else { throw .badLineEnd }
    lineStart = feed + 1
    scanned = lineStart
    return feed - 1
  }

  private mutating func field(
    in bytes: UnsafeRawBufferPointer, _ start: Int, _ end: Int
  ) throws(WireError) {
    guard fields.count < limits.maxFields else { throw .tooManyFields }
    guard let colon = Self.colon(in: bytes, start, end), colon > start else {
      throw Self.nameFault(in: bytes, start, end)
    }
    guard colon - start <= UInt16.max else { throw .headTooLarge }
    let name = UnsafeRawBufferPointer(rebasing: bytes[start..<colon])
    let known = FieldName.recognise(name)
    // Known names are tokens, so only other names are checked.
    if known == .other, !name.allSatisfy(ASCII.isTokenByte) { throw Self.nameFault(in: bytes, start, end) }
    var first = colon + 1
    var last = end
    while first < last, Self.isSpace(bytes[first]) { first += 1 }
    while first < last, Self.isSpace(bytes[last - 1]) { last -= 1 }
    guard Self.isValue(bytes, first, last) else { throw .badFieldValue }
    if fields.isEmpty { fields.reserveCapacity(Self.defaultFields) }
    fields.append(
      MessageHead.Field(
        nameStart: UInt32(truncatingIfNeeded: start), valueStart: UInt32(truncatingIfNeeded: first),
        valueLength: UInt32(truncatingIfNeeded: last - first),
        nameLength: UInt16(truncatingIfNeeded: colon - start), name: known))
  }

  /// The initial capacity of the index. A browser behind a gateway sends about 20 fields; 24 entries take 384 bytes.
  private static let defaultFields = 24

  /// The offset of the first colon in a line.
  private static func colon(in bytes: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> Int? {
    var at = start
    while at + 8 <= end {
      if let position = Word.first(ASCII.colon, in: Word.load(bytes, at)) { return at + position }
      at += 8
    }
    while at < end, bytes[at] != ASCII.colon { at += 1 }
    return at < end ? at : nil
  }

  /// The error of a line that does not begin with a token and a colon.
  private static func nameFault(in bytes: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> WireError {
    var at = start
    while at < end, ASCII.isTokenByte(bytes[at]) { at += 1 }
    guard at < end, isSpace(bytes[at]) else { return .badFieldName }
    return at == start ? .foldedField : .spaceBeforeColon
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == ASCII.space || byte == ASCII.tab }

  /// Whether the bytes are valid in a field value: no control byte except tab (RFC 9110, section 5.5).
  static func isValue(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> Bool {
    var at = start
    while at + 8 <= end {
      if Word.hasControl(Word.load(bytes, at)), !isPlain(bytes, at, at + 8) { return false }
      at += 8
    }
    return isPlain(bytes, at, end)
  }

  private static func isPlain(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> Bool {
    for at in start..<end {
      let byte = bytes[at]
      if byte < 0x20 && byte != ASCII.tab || byte == 0x7F { return false }
    }
    return true
  }
}

import Glibc
import NIOCore

/// Reads a start line and field lines up to the empty line, and resumes where it ran out of bytes.
///
/// Each line is parsed once, when its line feed has arrived, and the search for the line feed resumes where it ended.
/// So the result depends on the bytes alone, never on how they were divided, and bytes that arrive one by one cost no
/// more than a whole head.
struct FieldScanner {
  private let limits: HeadLimits
  private let reading: Reading
  private(set) var fields: [MessageHead.Field] = []
  /// The indices of the fields whose value is folded over several lines.
  private var folded: [Int] = []
  /// Whether a fault was tolerated by which another reader may see another framing of the message.
  private(set) var isDoubtful = false
  /// The offset of the first line that is not parsed yet.
  private var lineStart = 0
  /// The offset up to which the unfinished line contains no line feed.
  private var scanned = 0

  init(limits: HeadLimits, reading: Reading = .strict) {
    self.limits = limits
    self.reading = reading
  }

  /// Whether no byte of the section has been scanned yet.
  var isAtStart: Bool { scanned == 0 }

  /// Returns the fields found and resets the scanner for another section.
  ///
  /// - Parameter section: The bytes that were scanned. Folded values become one line each in it.
  mutating func takeFields(of section: inout ByteBuffer) -> [MessageHead.Field] {
    if !folded.isEmpty { unfold(&section) }
    var taken: [MessageHead.Field] = []
    swap(&taken, &fields)
    lineStart = 0
    scanned = 0
    isDoubtful = false
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
      return try fold(in: bytes, start, end)
    }
    guard colon - start <= UInt16.max else { throw .headTooLarge }
    var name = UnsafeRawBufferPointer(rebasing: bytes[start..<colon])
    var known = FieldName.recognise(name)
    // Known names are tokens, so only other names are checked.
    if known == .other, !name.allSatisfy(ASCII.isTokenByte) {
      guard !Self.isSpace(name[0]) else { return try fold(in: bytes, start, end) }
      name = try withoutSpace(name, in: bytes, start, end)
      known = FieldName.recognise(name)
      if FieldNameSet.framing.contains(known) { isDoubtful = true }
    }
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
        nameLength: UInt16(truncatingIfNeeded: name.count), name: known))
  }

  /// The name without the white space before its colon, which a proxy has to remove from a response (RFC 9112, section
  /// 5.1).
  private func withoutSpace(
    _ name: UnsafeRawBufferPointer, in bytes: UnsafeRawBufferPointer, _ start: Int, _ end: Int
  ) throws(WireError) -> UnsafeRawBufferPointer {
    var length = name.count
    while length > 0, Self.isSpace(name[length - 1]) { length -= 1 }
    let name = UnsafeRawBufferPointer(rebasing: name[..<length])
    guard reading == .tolerant, name.allSatisfy(ASCII.isTokenByte) else {
      throw Self.nameFault(in: bytes, start, end)
    }
    return name
  }

  /// Takes a line that does not begin with a name as more of the value before it, if it is folded (RFC 9112, section
  /// 5.2). The framing is never taken from such a value, and a line of white space alone may be the section's end to
  /// others.
  private mutating func fold(
    in bytes: UnsafeRawBufferPointer, _ start: Int, _ end: Int
  ) throws(WireError) {
    let fault = Self.nameFault(in: bytes, start, end)
    var first = start
    var last = end
    while first < last, Self.isSpace(bytes[first]) { first += 1 }
    while first < last, Self.isSpace(bytes[last - 1]) { last -= 1 }
    guard reading == .tolerant, fault == .foldedField, first < last, let field = fields.indices.last,
      !FieldNameSet.framing.contains(fields[field].name)
    else { throw fault }
    guard Self.isValue(bytes, first, last) else { throw .badFieldValue }
    isDoubtful = true
    if fields[field].valueLength == 0 { fields[field].valueStart = UInt32(truncatingIfNeeded: first) }
    fields[field].valueLength = UInt32(truncatingIfNeeded: last) - fields[field].valueStart
    if folded.last != field { folded.append(field) }
  }

  /// Puts one space in the place of each line's end, and the white space around it, within the folded values.
  private mutating func unfold(_ section: inout ByteBuffer) {
    section.withUnsafeMutableReadableBytes { bytes in
      for field in folded {
        let value = fields[field].valueRange
        var (from, to) = (value.lowerBound, value.lowerBound)
        while from < value.upperBound {
          var byte = bytes[from]
          from += 1
          if byte == ASCII.carriageReturn {
            while to > value.lowerBound, Self.isSpace(bytes[to - 1]) { to -= 1 }
            from += 1
            while Self.isSpace(bytes[from]) { from += 1 }
            byte = ASCII.space
          }
          bytes[to] = byte
          to += 1
        }
        fields[field].valueLength = UInt32(truncatingIfNeeded: to - value.lowerBound)
      }
    }
    folded = []
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

/// The two readers of the grammar of HTTP/1.1 (RFC 9112).
public enum Reading: Sendable {
  /// Everything is refused that the grammar does not allow, or that readers may understand in two ways. Every request is
  /// read so, and every response of which nothing may be guessed.
  case strict
  /// As `strict`, but for faults that leave a response one meaning: they are put right, so that only the right form is
  /// forwarded and recorded. To refuse what every other proxy reads would make *executed* into *unknown*.
  case tolerant
}

import Wire

/// The reason why a text is not accepted as JSON.
enum JSONFault: Error { case malformed, tooDeep }

/// Checks a text against RFC 8259 in one pass, and indexes its objects.
///
/// The parser is strict: the text is UTF-8 without a byte order mark, and has nothing but white space around one value.
/// The time is linear, and recursion ends at `maxDepth`.
struct JSONParser {
  /// The maximum nesting of arrays and objects (contract, section 3).
  static let maxDepth = 128

  private let text: UnsafeRawBufferPointer
  private var position = 0
  private var document: JSONDocument
  /// The members of the objects that are still open, those of the innermost object last.
  private var pending: [JSONDocument.Member] = []
  /// The bitwise OR of all bytes in strings. At 0x80 or above, the text must be checked for UTF-8.
  private var seen: UInt8 = 0

  private init(_ text: UnsafeRawBufferPointer) {
    self.text = text
    document = JSONDocument(text: text)
    // The capacity is more than most requests need, and avoids growing step by step.
    pending.reserveCapacity(16)
  }

  /// Parses a text that consists of one JSON value.
  static func parse(_ text: UnsafeRawBufferPointer) throws(JSONFault) -> JSONDocument {
    // Lengths are stored in 31 bits.
    guard text.count < 1 << 31 else { throw .malformed }
    var parser = JSONParser(text)
    try parser.parse()
    return parser.document
  }

  private mutating func parse() throws(JSONFault) {
    skipSpace()
    document.start = position
    try value(depth: 0)
    skipSpace()
    guard position == text.count else { throw .malformed }
    invariant(pending.isEmpty, "a member of a document belongs to no object")
    if seen >= 0x80 { try checkUTF8() }
  }

  private func checkUTF8() throws(JSONFault) {
    let isValid = text.withMemoryRebound(to: UInt8.self) { bytes in
      (try? UTF8Span(validating: bytes.span)) != nil
    }
    guard isValid else { throw .malformed }
  }

  private mutating func value(depth: Int) throws(JSONFault) {
    switch try current() {
    case JSONByte.openBrace: try object(depth: depth)
    case JSONByte.openBracket: try array(depth: depth)
    case JSONByte.quote: _ = try string()
    case UInt8(ascii: "t"): try literal("true")
    case UInt8(ascii: "f"): try literal("false")
    case UInt8(ascii: "n"): try literal("null")
    default: try number()
    }
  }
}

extension JSONParser {
  @inline(__always)
  private func current() throws(JSONFault) -> UInt8 {
    guard position < text.count else { throw .malformed }
    return text[position]
  }

  @inline(__always)
  private mutating func skipSpace() {
    while position < text.count, JSONByte.isSpace(text[position]) { position += 1 }
  }

  @inline(__always)
  private mutating func expect(_ byte: UInt8) throws(JSONFault) {
    guard try current() == byte else { throw .malformed }
    position += 1
  }

  private mutating func literal(_ literal: StaticString) throws(JSONFault) {
    let length = literal.utf8CodeUnitCount
    guard text.count - position >= length else { throw .malformed }
    for index in 0..<length where text[position + index] != literal.utf8Start[index] { throw .malformed }
    position += length
  }
}

// Objects and arrays.
extension JSONParser {
  private mutating func object(depth: Int) throws(JSONFault) {
    guard depth < Self.maxDepth else { throw .tooDeep }
    let number = document.objects.count
    document.objects.append(JSONDocument.Object())
    let firstPending = pending.count
    position += 1
    skipSpace()
    if try current() == JSONByte.closeBrace {
      position += 1
    } else {
      repeat {
        skipSpace()
        try member(depth: depth)
        skipSpace()
      } while try hasNext(before: JSONByte.closeBrace)
    }
    close(number, firstPending: firstPending)
  }

  @inline(__always)
  private mutating func member(depth: Int) throws(JSONFault) {
    guard try current() == JSONByte.quote else { throw .malformed }
    let nameStart = position + 1
    let hasEscape = try string()
    let nameLength = UInt32(position - 1 - nameStart)
    skipSpace()
    try expect(JSONByte.colon)
    skipSpace()
    let valueStart = position
    let firstObject = document.objects.count
    try value(depth: depth + 1)
    pending.append(
      JSONDocument.Member(
        nameStart: UInt32(nameStart),
        nameLengthAndEscape: hasEscape ? nameLength | JSONDocument.Member.escapeBit : nameLength,
        valueStart: UInt32(valueStart), firstObject: UInt32(firstObject)))
  }

  private mutating func array(depth: Int) throws(JSONFault) {
    guard depth < Self.maxDepth else { throw .tooDeep }
    position += 1
    skipSpace()
    if try current() == JSONByte.closeBracket {
      position += 1
      return
    }
    repeat {
      skipSpace()
      try value(depth: depth + 1)
      skipSpace()
    } while try hasNext(before: JSONByte.closeBracket)
  }

  /// Consumes a comma (true, since more follows) or the closing byte (false).
  @inline(__always)
  private mutating func hasNext(before close: UInt8) throws(JSONFault) -> Bool {
    let byte = try current()
    position += 1
    if byte == JSONByte.comma { return true }
    guard byte == close else { throw .malformed }
    return false
  }

  /// Sorts an object's members and moves them to the index.
  private mutating func close(_ number: Int, firstPending: Int) {
    let count = pending.count - firstPending
    guard count > 0 else {
      document.objects[number] = JSONDocument.Object(
        firstMember: UInt32(document.members.count), memberCount: 0, end: UInt32(position),
        next: UInt32(document.objects.count))
      return
    }
    if count > 1, !sort(from: firstPending) { document.hasDuplicates = true }
    document.objects[number] = JSONDocument.Object(
      firstMember: UInt32(document.members.count), memberCount: UInt32(count), end: UInt32(position),
      next: UInt32(document.objects.count))
    if firstPending == 0, document.members.isEmpty {
      swap(&document.members, &pending)
    } else {
      // One by one: most objects have few members, for which a call of a general operation costs more.
      for index in firstPending..<pending.count { document.members.append(pending[index]) }
      for _ in 0..<count { pending.removeLast() }
    }
  }

  /// Sorts the members of the innermost object; false if two have the same name.
  private mutating func sort(from firstPending: Int) -> Bool {
    let names = document.names
    return pending.withUnsafeMutableBufferPointer {
      names.sort(UnsafeMutableBufferPointer(rebasing: $0[firstPending...]))
    }
  }
}

// Strings and numbers.
extension JSONParser {
  /// Consumes a string and returns whether it contains escapes.
  @inline(__always)
  private mutating func string() throws(JSONFault) -> Bool {
    position += 1
    var hasEscape = false
    while position < text.count {
      let byte = text[position]
      position += 1
      switch byte {
      case JSONByte.quote: return hasEscape
      case JSONByte.backslash:
        hasEscape = true
        try escape()
      case 0..<0x20: throw .malformed
      default: seen |= byte
      }
    }
    throw .malformed
  }

  private mutating func escape() throws(JSONFault) {
    let kind = try current()
    position += 1
    switch kind {
    case JSONByte.quote, JSONByte.backslash, UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      return
    case UInt8(ascii: "u"):
      for _ in 0..<4 {
        guard ASCII.hexValue(try current()) != nil else { throw .malformed }
        position += 1
      }
    default: throw .malformed
    }
  }

  @inline(__always)
  private mutating func number() throws(JSONFault) {
    if try current() == UInt8(ascii: "-") { position += 1 }
    if try current() == UInt8(ascii: "0") { position += 1 } else { try digits() }
    if position < text.count, text[position] == UInt8(ascii: ".") {
      position += 1
      try digits()
    }
    if position < text.count, text[position] | 0x20 == UInt8(ascii: "e") {
      position += 1
      let sign = try current()
      if sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { position += 1 }
      try digits()
    }
  }

  @inline(__always)
  private mutating func digits() throws(JSONFault) {
    let first = position
    while position < text.count, 0x30...0x39 ~= text[position] { position += 1 }
    guard position > first else { throw .malformed }
  }
}

/// A JSON number in one form, which all spellings of the same exact value share: `1`, `1.0` and `1e0` are `1`, and
/// `100` is `1e2`.
///
/// The form is the digits from the first to the last one that is not zero, with the exponent of the last one. No value is
/// rounded, so that digits which a double cannot hold still count. A number with an exponent of more than 18 digits is
/// written as it stands.
enum JSONNumber {
  private static let zero = UInt8(ascii: "0")
  private static let minus = UInt8(ascii: "-")
  /// The first byte of a number that is written as it stands. No other form begins with it.
  private static let asItStands = UInt8(ascii: "#")
  private static let maxExponentDigits = 18

  /// Writes a number of a checked text.
  static func write(_ text: UnsafeRawBufferPointer, to hash: inout FramedHash) {
    let start = text[0] == minus ? 1 : 0
    let wholeEnd = digitsEnd(text, from: start)
    // Most numbers are integers that do not end with a zero, and are in that form already.
    if wholeEnd == text.count, text[wholeEnd - 1] != zero { return hash.bytes(text) }
    var fraction = wholeEnd..<wholeEnd
    if wholeEnd < text.count, text[wholeEnd] == UInt8(ascii: ".") {
      fraction = wholeEnd + 1..<digitsEnd(text, from: wholeEnd + 1)
    }
    guard let first = significant(text, in: start..<wholeEnd) ?? significant(text, in: fraction) else {
      return hash.byte(zero)
    }
    guard let exponent = exponent(text, from: fraction.upperBound) else {
      hash.byte(asItStands)
      return hash.bytes(text)
    }
    let last = lastSignificant(text, in: fraction) ?? lastSignificant(text, in: start..<wholeEnd) ?? first
    if start == 1 { hash.byte(minus) }
    if first < wholeEnd, last >= fraction.lowerBound {
      hash.bytes(UnsafeRawBufferPointer(rebasing: text[first..<wholeEnd]))
      hash.bytes(UnsafeRawBufferPointer(rebasing: text[fraction.lowerBound...last]))
    } else {
      hash.bytes(UnsafeRawBufferPointer(rebasing: text[first...last]))
    }
    let place = last < wholeEnd ? wholeEnd - 1 - last : fraction.lowerBound - 1 - last
    write(exponent: exponent + place, to: &hash)
  }

  private static func digitsEnd(_ text: UnsafeRawBufferPointer, from start: Int) -> Int {
    var end = start
    while end < text.count, 0x30...0x39 ~= text[end] { end += 1 }
    return end
  }

  private static func significant(_ text: UnsafeRawBufferPointer, in digits: Range<Int>) -> Int? {
    for index in digits where text[index] != zero { return index }
    return nil
  }

  private static func lastSignificant(_ text: UnsafeRawBufferPointer, in digits: Range<Int>) -> Int? {
    for index in digits.reversed() where text[index] != zero { return index }
    return nil
  }

  /// The exponent that begins here, 0 if there is none; `nil` if it has too many digits.
  private static func exponent(_ text: UnsafeRawBufferPointer, from start: Int) -> Int? {
    guard start < text.count else { return 0 }
    var digits = text[(start + 1)...]
    let isNegative = digits.first == minus
    if isNegative || digits.first == UInt8(ascii: "+") { digits = digits.dropFirst() }
    digits = digits.drop { $0 == zero }
    guard digits.count <= maxExponentDigits else { return nil }
    let value = digits.reduce(0) { $0 * 10 + Int($1 - zero) }
    return isNegative ? -value : value
  }

  private static func write(exponent: Int, to hash: inout FramedHash) {
    guard exponent != 0 else { return }
    hash.byte(UInt8(ascii: "e"))
    if exponent < 0 { hash.byte(minus) }
    var scale: UInt = 1
    while exponent.magnitude / scale > 9 { scale *= 10 }
    while scale > 0 {
      hash.byte(zero + UInt8(exponent.magnitude / scale % 10))
      scale /= 10
    }
  }
}

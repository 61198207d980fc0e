import Wire

/// The reason why a text is not accepted as a GraphQL document.
struct GraphQLFault: Error {}

/// The tokens of a GraphQL document (October 2021, section 2.1), read in one pass without allocation.
///
/// It is no stricter than needed to find where strings, comments and brackets begin and end. Bytes about which servers
/// of different ages disagree are a fault.
struct GraphQLLexer {
  enum Token: Equatable {
    /// The position of a name in the text.
    case name(Range<Int>)
    /// One of `! $ & ( ) ... : = @ [ ] { | }`; a dot stands for three of them.
    case punctuator(UInt8)
    /// A string, a block string or a number.
    case value
  }

  private static let quote = UInt8(ascii: "\"")
  private static let backslash = UInt8(ascii: "\\")

  private let text: UnsafeRawBufferPointer
  private var position = 0

  init(_ text: UnsafeRawBufferPointer) { self.text = text }

  /// The next token; `nil` at the end of the text.
  mutating func next() throws(GraphQLFault) -> Token? {
    try skipIgnored()
    guard position < text.count else { return nil }
    let byte = text[position]
    switch byte {
    case Self.quote:
      try string()
      return .value
    case UInt8(ascii: "_"),
      _ where ASCII.isLetter(byte):
      return .name(name())
    case UInt8(ascii: "-"), 0x30...0x39:
      number()
      return .value
    case UInt8(ascii: "."):
      guard begins("...") else { throw GraphQLFault() }
      position += 3
      return .punctuator(byte)
    default:
      guard Self.isPunctuator(byte) else { throw GraphQLFault() }
      position += 1
      return .punctuator(byte)
    }
  }

  private static func isPunctuator(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "!"), UInt8(ascii: "$"), UInt8(ascii: "&"), UInt8(ascii: "("), UInt8(ascii: ")"),
      UInt8(ascii: ":"), UInt8(ascii: "="), UInt8(ascii: "@"), UInt8(ascii: "["), UInt8(ascii: "]"),
      UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
      true
    default: false
    }
  }

  private func begins(_ word: StaticString) -> Bool {
    let length = word.utf8CodeUnitCount
    guard text.count - position >= length else { return false }
    for index in 0..<length where text[position + index] != word.utf8Start[index] { return false }
    return true
  }

  /// Skips white space, commas, comments and byte order marks.
  private mutating func skipIgnored() throws(GraphQLFault) {
    while position < text.count {
      switch text[position] {
      case 0x20, 0x09, 0x0A, 0x0D, UInt8(ascii: ","): position += 1
      case UInt8(ascii: "#"): try skipComment()
      case 0xEF where begins("\u{FEFF}"): position += 3
      default: return
      }
    }
  }

  /// Skips a comment, up to the end of its line. Some servers end it at other marks of a line's end, too.
  private mutating func skipComment() throws(GraphQLFault) {
    while position < text.count {
      switch text[position] {
      case 0x0A, 0x0D: return
      case 0x09: position += 1
      case ..<0x20: throw GraphQLFault()
      case 0xE2 where begins("\u{2028}") || begins("\u{2029}"): throw GraphQLFault()
      default: position += 1
      }
    }
  }

  private mutating func name() -> Range<Int> {
    let start = position
    while position < text.count,
      ASCII.isLetterOrDigit(text[position]) || text[position] == UInt8(ascii: "_")
    {
      position += 1
    }
    return start..<position
  }

  /// Skips a number. The server checks its digits.
  private mutating func number() {
    while position < text.count {
      switch text[position] {
      case UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."): position += 1
      case let byte where ASCII.isLetterOrDigit(byte): position += 1
      default: return
      }
    }
  }

  private mutating func string() throws(GraphQLFault) {
    if begins("\"\"\"") { return try blockString() }
    position += 1
    while position < text.count {
      switch text[position] {
      case Self.quote:
        position += 1
        return
      case Self.backslash: position += 2
      case 0x0A, 0x0D: throw GraphQLFault()
      default: position += 1
      }
    }
    throw GraphQLFault()
  }

  /// Skips a block string, in which only `\"""` is an escape.
  private mutating func blockString() throws(GraphQLFault) {
    position += 3
    while position < text.count {
      if begins("\\\"\"\"") {
        position += 4
      } else if begins("\"\"\"") {
        position += 3
        return
      } else {
        position += 1
      }
    }
    throw GraphQLFault()
  }
}

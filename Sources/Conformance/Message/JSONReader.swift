import Wire

/// Reads a JSON document (RFC 8259). Lenient in nothing but duplicate members, of which it keeps all.
struct JSONReader {
  /// The maximum depth of brackets, so that a response cannot exhaust the stack.
  private static let maxDepth = 128

  private let bytes: [UInt8]
  private var index = 0

  private struct Malformed: Error {}

  static func read(_ bytes: some Sequence<UInt8>) -> JSONValue? {
    var reader = JSONReader(bytes: Array(bytes))
    return reader.document()
  }

  /// The index of the byte at which a document ceases to be JSON, at most its length; `nil` if it is JSON.
  static func fault(in bytes: [UInt8]) -> Int? {
    var reader = JSONReader(bytes: bytes)
    return reader.document() == nil ? reader.index : nil
  }

  private mutating func document() -> JSONValue? {
    guard let value = try? value(depth: 0) else { return nil }
    skipSpace()
    return index == bytes.count ? value : nil
  }

  private mutating func value(depth: Int) throws -> JSONValue {
    guard depth < Self.maxDepth else { throw Malformed() }
    skipSpace()
    switch peek {
    case UInt8(ascii: "{"): return try object(depth: depth)
    case UInt8(ascii: "["): return try array(depth: depth)
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default: return try number()
    }
  }

  private mutating func object(depth: Int) throws -> JSONValue {
    index += 1
    var members: [JSONValue.Member] = []
    if takes("}") { return .object(members) }
    repeat {
      skipSpace()
      let name = try string()
      guard takes(":") else { throw Malformed() }
      members.append(JSONValue.Member(name, try value(depth: depth + 1)))
    } while takes(",")
    guard takes("}") else { throw Malformed() }
    return .object(members)
  }

  private mutating func array(depth: Int) throws -> JSONValue {
    index += 1
    var elements: [JSONValue] = []
    if takes("]") { return .array(elements) }
    repeat { elements.append(try value(depth: depth + 1)) } while takes(",")
    guard takes("]") else { throw Malformed() }
    return .array(elements)
  }

  private mutating func string() throws -> String {
    guard peek == UInt8(ascii: "\"") else { throw Malformed() }
    index += 1
    var units: [UInt8] = []
    while let byte = peek {
      index += 1
      switch byte {
      case UInt8(ascii: "\""):
        guard let text = String(validating: units, as: UTF8.self) else { throw Malformed() }
        return text
      case UInt8(ascii: "\\"): units += try escaped()
      case 0..<0x20: throw Malformed()
      default: units.append(byte)
      }
    }
    throw Malformed()
  }

  private mutating func escaped() throws -> [UInt8] {
    guard let byte = peek else { throw Malformed() }
    index += 1
    switch byte {
    case UInt8(ascii: "n"): return [0x0A]
    case UInt8(ascii: "t"): return [0x09]
    case UInt8(ascii: "r"): return [0x0D]
    case UInt8(ascii: "b"): return [0x08]
    case UInt8(ascii: "f"): return [0x0C]
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
    case UInt8(ascii: "u"): return Array(String(try codePoint()).utf8)
    default: throw Malformed()
    }
  }

  /// Reads the digits of an escape, with those of a low surrogate. One without its other half is U+FFFD.
  private mutating func codePoint() throws -> Character {
    var units = [try hexUnit()]
    let next = index
    if UTF16.isLeadSurrogate(units[0]), bytes[index...].starts(with: #"\u"#.utf8) {
      index += 2
      let unit = try hexUnit()
      if UTF16.isTrailSurrogate(unit) { units.append(unit) } else { index = next }
    }
    return String(decoding: units, as: UTF16.self).first ?? "\u{FFFD}"
  }

  private mutating func hexUnit() throws -> UInt16 {
    let digits = bytes[index...].prefix(4)
    guard digits.count == 4, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
      let unit = UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
    else { throw Malformed() }
    index += 4
    return unit
  }

  private mutating func number() throws -> JSONValue {
    let start = index
    skip("-")
    if !skip("0") { try digits() }
    if skip(".") { try digits() }
    if skip("e") || skip("E") {
      if !skip("-") { skip("+") }
      try digits()
    }
    return .number(String(decoding: bytes[start..<index], as: UTF8.self))
  }

  private mutating func digits() throws {
    let start = index
    while let byte = peek, UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte { index += 1 }
    guard index > start else { throw Malformed() }
  }

  /// Takes the next byte if it is this one.
  @discardableResult
  private mutating func skip(_ character: Unicode.Scalar) -> Bool {
    guard peek == UInt8(ascii: character) else { return false }
    index += 1
    return true
  }

  private mutating func word(_ text: String, _ value: JSONValue) throws -> JSONValue {
    guard bytes[index...].starts(with: text.utf8) else { throw Malformed() }
    index += text.utf8.count
    return value
  }

  private var peek: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func takes(_ character: Unicode.Scalar) -> Bool {
    skipSpace()
    return skip(character)
  }

  private mutating func skipSpace() {
    while let byte = peek, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { index += 1 }
  }
}

extension JSONValue {
  /// Reads a document; `nil` if it is not JSON.
  public init?(_ bytes: some Sequence<UInt8>) {
    guard let value = JSONReader.read(bytes) else { return nil }
    self = value
  }
}

/// A JSON value that keeps the order of members and the digits of numbers, so that it can be written differently.
public indirect enum JSONValue: Equatable, Sendable {
  case null
  case bool(Bool)
  /// The number's text as it stood.
  case number(String)
  case string(String)
  case array([JSONValue])
  case object([Member])

  public struct Member: Equatable, Sendable {
    public var name: String
    public var value: JSONValue

    public init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }
}

extension JSONValue {
  /// The value at a JSON pointer (RFC 6901); `nil` if there is none. The empty pointer is the whole document.
  public func value(at pointer: String) -> JSONValue? {
    var value = self
    for token in JSONValue.tokens(pointer) {
      switch value {
      case .object(let members):
        guard let member = members.first(where: { $0.name == token }) else { return nil }
        value = member.value
      case .array(let elements):
        guard let index = Int(token), elements.indices.contains(index) else { return nil }
        value = elements[index]
      default:
        return nil
      }
    }
    return value
  }

  /// The document with another value at a pointer; `nil` if there is no value to replace.
  public func replacing(at pointer: String, with change: (JSONValue) -> JSONValue?) -> JSONValue? {
    replacing(JSONValue.tokens(pointer)[...], with: change)
  }

  private func replacing(_ tokens: ArraySlice<String>, with change: (JSONValue) -> JSONValue?) -> JSONValue? {
    guard let token = tokens.first else { return change(self) }
    switch self {
    case .object(var members):
      guard let index = members.firstIndex(where: { $0.name == token }),
        let value = members[index].value.replacing(tokens.dropFirst(), with: change)
      else { return nil }
      members[index].value = value
      return .object(members)
    case .array(var elements):
      guard let index = Int(token), elements.indices.contains(index),
        let value = elements[index].replacing(tokens.dropFirst(), with: change)
      else { return nil }
      elements[index] = value
      return .array(elements)
    default:
      return nil
    }
  }

  private static func tokens(_ pointer: String) -> [String] {
    pointer.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
      .map { String($0).replacing("~1", with: "/").replacing("~0", with: "~") }
  }

  /// The text of a string or a number, by which an id is known; `nil` for any other value.
  public var scalarText: String? {
    switch self {
    case .string(let text), .number(let text): text
    default: nil
    }
  }

  /// Every string and number in the document.
  public var scalars: [String] {
    switch self {
    case .null, .bool: []
    case .string(let text), .number(let text): [text]
    case .array(let elements): elements.flatMap(\.scalars)
    case .object(let members): members.flatMap(\.value.scalars)
    }
  }

  /// The order in which the members of objects are written.
  public enum Order: Sendable { case asRead, reversed }

  /// - Parameter space: The text after each colon, comma and opening bracket.
  public func text(_ order: Order = .asRead, space: String = "") -> String {
    switch self {
    case .null: return "null"
    case .bool(let value): return value ? "true" : "false"
    case .number(let text): return text
    case .string(let text): return text.jsonString
    case .array(let elements):
      return "[" + space + elements.map { $0.text(order, space: space) }.joined(separator: "," + space) + "]"
    case .object(let members):
      let ordered = order == .asRead ? members : members.reversed()
      let lines = ordered.map { "\($0.name.jsonString):\(space)\($0.value.text(order, space: space))" }
      return "{" + space + lines.joined(separator: "," + space) + "}"
    }
  }
}

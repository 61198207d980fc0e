import Glibc

/// Reads the JSON of the world's requests and responses, whose form it trusts.
enum JSONText {
  private static let (space, quote, backslash) = (UInt8(ascii: " "), UInt8(ascii: "\""), UInt8(ascii: "\\"))

  /// The texts of the elements of the first array with a name, byte for byte, and what follows the array; `nil` if there
  /// is none, or it does not end.
  static func elements(of name: String, in text: String) -> (elements: [String], rest: String)? {
    let bytes = Array(text.utf8)
    guard let value = start(of: name, in: bytes), bytes[value] == UInt8(ascii: "[") else { return nil }
    var elements: [String] = []
    var start = value + 1
    var (depth, isInText, isEscaped) = (0, false, false)
    let end = { (index: Int) in
      let element = bytes[start..<index].drop { $0 == space }
      if !element.isEmpty { elements.append(String(decoding: element, as: UTF8.self)) }
    }
    for index in start..<bytes.count {
      let byte = bytes[index]
      if isInText {
        isInText = isEscaped || byte != quote
        isEscaped = !isEscaped && byte == backslash
        continue
      }
      switch byte {
      case quote: isInText = true
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "]") where depth == 0:
        end(index)
        return (elements, String(decoding: bytes[(index + 1)...], as: UTF8.self))
      case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: ",") where depth == 0:
        end(index)
        start = index + 1
      default: break
      }
    }
    return nil
  }

  /// The value of a member of a flat object, as its text.
  static func member(_ name: String, of text: some StringProtocol) -> String? {
    member(name, of: Array(text.utf8))
  }

  /// The same of an object in bytes.
  static func member(_ name: String, of bytes: [UInt8]) -> String? {
    guard let start = start(of: name, in: bytes) else { return nil }
    let value =
      bytes[start] == quote
      ? bytes[(start + 1)...].prefix { $0 != quote }
      : bytes[start...].prefix { $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "}") && $0 != space }
    return String(decoding: value, as: UTF8.self)
  }

  /// The place of the value of the first member with a name.
  private static func start(of name: String, in bytes: [UInt8]) -> Int? {
    let mark = Array("\"\(name)\":".utf8)
    guard let found = bytes.first(mark, from: 0) else { return nil }
    return bytes[(found + mark.count)...].firstIndex { $0 != space }
  }
}

extension [UInt8] {
  /// The place at which bytes are found first, at or after another place; `nil` if they are not there.
  func first(_ mark: [UInt8], from start: Int) -> Int? {
    withUnsafeBytes { $0.first(mark, from: start) }
  }
}

extension UnsafeRawBufferPointer {
  /// The same.
  func first(_ mark: [UInt8], from start: Int) -> Int? {
    var at = start
    while let base = baseAddress, at + mark.count <= count,
      let found = memchr(base + at, Int32(mark[0]), count - at)
    {
      at = UnsafeRawPointer(found) - base
      guard at + mark.count <= count else { return nil }
      if memcmp(found, mark, mark.count) == 0 { return at }
      at += 1
    }
    return nil
  }
}

/// A pattern of `SCAN`'s `MATCH`.
struct GlobPattern {
  let pattern: Bytes

  func matches(_ text: Bytes) -> Bool { Self.matches(pattern[...], text[...]) }

  private static func matches(_ pattern: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) -> Bool {
    var (pattern, text) = (pattern, text)
    while let mark = pattern.first {
      switch mark {
      case UInt8(ascii: "*"):
        pattern = pattern.drop { $0 == UInt8(ascii: "*") }
        if pattern.isEmpty { return true }
        while true {
          if matches(pattern, text) { return true }
          if text.popFirst() == nil { return false }
        }
      case UInt8(ascii: "?"):
        guard text.popFirst() != nil else { return false }
        pattern.removeFirst()
      case UInt8(ascii: "["):
        guard let byte = text.popFirst() else { return false }
        let (isInside, rest) = set(pattern.dropFirst(), has: byte)
        guard isInside else { return false }
        pattern = rest
      default:
        if mark == UInt8(ascii: "\\"), pattern.count > 1 { pattern.removeFirst() }
        guard let byte = text.popFirst(), byte == pattern.removeFirst() else { return false }
      }
    }
    return text.isEmpty
  }

  /// Returns whether a set in brackets has a byte, and the pattern after it.
  private static func set(_ pattern: ArraySlice<UInt8>, has byte: UInt8) -> (Bool, ArraySlice<UInt8>) {
    var rest = pattern
    let isNegated = rest.first == UInt8(ascii: "^")
    if isNegated { rest.removeFirst() }
    var isFound = false
    while let mark = rest.popFirst(), mark != UInt8(ascii: "]") {
      if mark == UInt8(ascii: "\\"), let escaped = rest.popFirst() {
        isFound = isFound || escaped == byte
      } else if rest.count >= 2, rest.first == UInt8(ascii: "-") {
        rest.removeFirst()
        let end = rest.removeFirst()
        isFound = isFound || min(mark, end)...max(mark, end) ~= byte
      } else {
        isFound = isFound || mark == byte
      }
    }
    return (isFound != isNegated, rest)
  }
}

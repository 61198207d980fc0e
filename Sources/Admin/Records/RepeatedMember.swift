import Foundation

/// A member that an object of a JSON text has twice. Foundation's decoder takes one of the two silently.
struct RepeatedMember {
  let path: String

  /// An object or an array that is open.
  private struct Level {
    /// The names of the object's members so far, byte by byte.
    var names: Set<[UInt8]> = []
    /// The member whose value is being read; `nil` in an array.
    var current: String?
  }

  private static let quote = UInt8(ascii: "\"")
  private static let backslash = UInt8(ascii: "\\")

  /// The first one in a text that the decoder takes for JSON; `nil` if there is none.
  init?(in text: [UInt8]) {
    var levels: [Level] = []
    var rest = text[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "{"), UInt8(ascii: "["): levels.append(Level())
      case UInt8(ascii: "}"), UInt8(ascii: "]"): _ = levels.popLast()
      case Self.quote:
        let string = Self.string(&rest)
        // A string before a colon is a name.
        guard Self.isName(before: rest), !levels.isEmpty else { continue }
        let name = Self.decoded(string)
        levels[levels.count - 1].current = name
        guard levels[levels.count - 1].names.insert(Array(name.utf8)).inserted else {
          path = levels.compactMap(\.current).joined(separator: ".")
          return
        }
      default: break
      }
    }
    return nil
  }

  /// Consumes a string and its closing quote, and returns what is between the quotes.
  private static func string(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let start = rest
    while let byte = rest.popFirst(), byte != quote {
      if byte == backslash { _ = rest.popFirst() }
    }
    return start.prefix(max(0, start.count - rest.count - 1))
  }

  /// Whether a colon follows, perhaps after white space.
  private static func isName(before rest: ArraySlice<UInt8>) -> Bool {
    rest.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: ":")
  }

  /// The name that a string stands for: an escape is another spelling of its character.
  private static func decoded(_ string: ArraySlice<UInt8>) -> String {
    let plain = String(decoding: string, as: UTF8.self)
    guard string.contains(backslash) else { return plain }
    return (try? JSONDecoder().decode(String.self, from: Data("\"\(plain)\"".utf8))) ?? plain
  }
}

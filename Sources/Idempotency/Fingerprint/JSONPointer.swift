/// A place in a JSON document (RFC 6901), parsed once from the configuration.
public struct JSONPointer: Hashable, Sendable {
  /// One step: the name of a member, or the index of an element if the name is a number.
  struct Segment: Hashable, Sendable {
    let name: [UInt8]
    /// The index of an element; `nil` unless the name consists of digits without a leading zero.
    let index: Int?

    /// Whether the name is `*`, which may stand for all elements of an array.
    var isStar: Bool { name == [UInt8(ascii: "*")] }
  }

  let segments: [Segment]

  /// Parses a pointer; `nil` if the text is not empty and does not begin with `/`, or if it contains a `~` that is not
  /// followed by 0 or 1.
  public init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard let first = bytes.first else {
      segments = []
      return
    }
    guard first == UInt8(ascii: "/") else { return nil }
    var segments: [Segment] = []
    for part in bytes.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      guard let name = Self.unescaped(part) else { return nil }
      segments.append(Segment(name: name, index: Self.index(name)))
    }
    self.segments = segments
  }

  /// The pointer to a member of the outermost object.
  init(member name: String) {
    let name = Array(name.utf8)
    segments = [Segment(name: name, index: Self.index(name))]
  }

  private static func unescaped(_ part: ArraySlice<UInt8>) -> [UInt8]? {
    var name: [UInt8] = []
    var rest = part
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "~") else {
        name.append(byte)
        continue
      }
      switch rest.popFirst() {
      case UInt8(ascii: "0"): name.append(UInt8(ascii: "~"))
      case UInt8(ascii: "1"): name.append(UInt8(ascii: "/"))
      default: return nil
      }
    }
    return name
  }

  private static func index(_ name: [UInt8]) -> Int? {
    guard !name.isEmpty, name.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
    guard name.count == 1 || name[0] != 0x30 else { return nil }
    return Int(String(decoding: name, as: UTF8.self))
  }
}

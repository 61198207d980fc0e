/// The fields with which a request makes some backends take it for one of another path than the one that was matched.
enum PathOverrides {
  /// In lower case.
  private static let names: [StaticString] = [
    "x-original-url", "x-rewrite-url", "x-override-url", "x-http-path-override",
  ]

  /// Whether the name at this range is one of them, also with underscores.
  static func contain(_ all: UnsafeRawBufferPointer, _ range: Range<Int>) -> Bool {
    guard 13...20 ~= range.count, all[range.lowerBound] | 0x20 == UInt8(ascii: "x") else { return false }
    return names.contains { name in
      name.utf8CodeUnitCount == range.count
        && (0..<range.count).allSatisfy { index in
          let byte = all[range.lowerBound + index]
          return (byte == UInt8(ascii: "_") ? UInt8(ascii: "-") : ASCII.lowercased(byte))
            == name.utf8Start[index]
        }
    }
  }
}

import NIOCore
import Wire

extension MessageHead {
  /// The position of the value of the one cookie with this name (RFC 6265, section 4.2). HTTP/2 may divide the cookies
  /// among several fields.
  func findCookie(_ name: String) -> FieldFinding {
    bytes.withUnsafeReadableBytes { all in
      var finding = FieldFinding.absent
      for field in fields where field.name == .cookie {
        for pair in all[field.valueRange].split(separator: UInt8(ascii: ";")) {
          guard let value = Self.value(of: pair, named: name) else { continue }
          guard case .absent = finding else { return .repeated }
          finding = .once(value)
        }
      }
      return finding
    }
  }

  private static func value(of pair: Slice<UnsafeRawBufferPointer>, named name: String) -> Range<Int>? {
    guard let equals = pair.firstIndex(of: UInt8(ascii: "=")),
      trimmed(pair[..<equals]).elementsEqual(name.utf8)
    else { return nil }
    let value = trimmed(pair[(equals + 1)...])
    return value.startIndex..<value.endIndex
  }
}

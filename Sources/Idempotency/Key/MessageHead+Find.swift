import NIOCore
import Wire

/// The number of occurrences of a field or a cookie, with the position of a single one.
enum FieldFinding {
  case absent
  case once(Range<Int>)
  case repeated
}

extension MessageHead {
  /// The position of the value of the one field with this name, which is given in lower case.
  func find(_ lowercased: String) -> FieldFinding {
    var lowercased = lowercased
    return lowercased.withUTF8 { name in
      let name = UnsafeRawBufferPointer(name)
      return bytes.withUnsafeReadableBytes { all in
        var finding = FieldFinding.absent
        for field in fields where Int(field.nameLength) == name.count {
          let own = UnsafeRawBufferPointer(rebasing: all[field.nameRange])
          guard ASCII.equalsIgnoringCase(own, name) else { continue }
          guard case .absent = finding else { return .repeated }
          finding = .once(field.valueRange)
        }
        return finding
      }
    }
  }
}

extension MessageHead {
  /// The maximum number of cookies that are read. Browsers keep 180 of a host at most.
  private static let maxCookies = 1000

  /// The position of the value of the one cookie with this name (RFC 6265, section 4.2). HTTP/2 may divide the cookies
  /// among several fields. Behind more cookies than are read there may be a second one.
  func findCookie(_ name: String) -> FieldFinding {
    bytes.withUnsafeReadableBytes { all in
      var finding = FieldFinding.absent
      var left = Self.maxCookies
      for field in fields where field.name == .cookie {
        var start = field.valueRange.lowerBound
        let end = field.valueRange.upperBound
        while start < end {
          guard left > 0 else { return .repeated }
          left -= 1
          let pairEnd = ASCII.index(of: UInt8(ascii: ";"), in: all, start..<end) ?? end
          if let value = Self.value(of: all[start..<pairEnd], named: name) {
            guard case .absent = finding else { return .repeated }
            finding = .once(value)
          }
          start = pairEnd + 1
        }
      }
      return finding
    }
  }

  private static func value(of pair: Slice<UnsafeRawBufferPointer>, named name: String) -> Range<Int>? {
    // The first letter rules most cookies out.
    guard let first = pair.first(where: { $0 != ASCII.space && $0 != ASCII.tab }), first == name.utf8.first,
      let equals = pair.firstIndex(of: UInt8(ascii: "=")),
      trimmed(pair[..<equals]).elementsEqual(name.utf8)
    else { return nil }
    let value = trimmed(pair[(equals + 1)...])
    return value.startIndex..<value.endIndex
  }
}

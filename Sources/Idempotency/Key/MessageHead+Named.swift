import NIOCore
import Wire

/// How often a field, or a cookie, is there.
enum FieldFinding {
  case absent
  case once(Range<Int>)
  case repeated
}

extension MessageHead {
  /// Where the value of the one field of this name stands; the name is given in lower case.
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

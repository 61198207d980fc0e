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

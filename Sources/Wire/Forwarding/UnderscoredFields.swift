/// The treatment of fields whose names contain an underscore.
///
/// Backends that pass fields on as CGI does (RFC 3875, section 4.1.18) read `Idempotency_Key` as `Idempotency-Key`.
public enum UnderscoredFields: Sendable {
  case dropped
  /// Passed on, except for those that spell one of these names with underscores.
  case passed(except: FieldNameSet)

  /// Whether the field with the name at this range is left out.
  func excludes(_ all: UnsafeRawBufferPointer, _ range: Range<Int>) -> Bool {
    if case .passed(let names) = self, names.isEmpty { return false }
    let name = UnsafeRawBufferPointer(rebasing: all[range])
    guard ASCII.index(of: 0x5F, in: name, 0..<name.count) != nil else { return false }
    switch self {
    case .dropped: return true
    case .passed(let names): return names.contains(Self.hyphenated(name))
    }
  }

  /// The field name with hyphens instead of underscores.
  private static func hyphenated(_ name: UnsafeRawBufferPointer) -> FieldName {
    withUnsafeTemporaryAllocation(byteCount: name.count, alignment: 1) { copy in
      for index in 0..<name.count { copy[index] = name[index] == 0x5F ? 0x2D : name[index] }
      return FieldName.recognise(UnsafeRawBufferPointer(copy))
    }
  }
}

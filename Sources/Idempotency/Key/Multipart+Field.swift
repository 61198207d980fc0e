extension Multipart {
  /// The result of a search for a field of the form.
  enum FieldSearch {
    case absent
    /// The field's content.
    case once(Range<Int>)
    case repeated
    /// Readers may disagree on the field: the head of any part is not plain, or a part may have this name to some.
    case unreadable
  }

  /// Searches for the one field with this name.
  ///
  /// A file with this name is not the field. Some readers take one for it, such as one with an empty file name.
  func field(named name: String, in body: UnsafeRawBufferPointer) -> FieldSearch {
    var result = FieldSearch.absent
    var isDisputed = false
    for part in parts {
      guard let head = PartHead(UnsafeRawBufferPointer(rebasing: body[part.fields])) else {
        return .unreadable
      }
      switch head.match(name) {
      case .other: break
      case .disputed: isDisputed = true
      case .field:
        guard case .absent = result else { return .repeated }
        result = .once(part.content)
      }
    }
    if isDisputed, case .absent = result { return .unreadable }
    return result
  }
}

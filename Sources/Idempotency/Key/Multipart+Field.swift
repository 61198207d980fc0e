import Wire

extension Multipart {
  /// Divides a form for the search of a field; `nil` if readers may disagree on its parts, as where the boundary stands
  /// in a part: some begin another part there, after a bare LF say.
  ///
  /// Unlike for a fingerprint, line ends before and after the form do not matter, and it may have no part.
  ///
  /// - Returns: The parts, as positions in `text`.
  static func plain(
    _ body: UnsafeRawBufferPointer, boundary: [UInt8]
  ) -> (form: Multipart, text: UnsafeRawBufferPointer)? {
    let text = withoutOuterLineEnds(body)
    let delimiter = [UInt8(ascii: "-"), UInt8(ascii: "-")] + boundary
    return delimiter.withUnsafeBytes { delimiter in
      let form: Multipart
      if text.count == delimiter.count + 2, text.starts(with: delimiter),
        text.suffix(2).allSatisfy({ $0 == UInt8(ascii: "-") })
      {
        form = Multipart(parts: [])
      } else {
        guard let divided = Multipart(text, boundary: boundary) else { return nil }
        form = divided
      }
      let count = form.parts.count + 1
      return Self.count(of: delimiter, in: text, upTo: count + 1) == count ? (form, text) : nil
    }
  }

  /// The number of places at which a pattern stands, counted up to `max`.
  ///
  /// By Knuth, Morris and Pratt, in linear time: a client chooses both the pattern and the text.
  private static func count(
    of pattern: UnsafeRawBufferPointer, in text: UnsafeRawBufferPointer, upTo max: Int
  ) -> Int {
    // For each prefix of the pattern, the length of the longest other prefix that ends it.
    var borders = [0, 0]
    for index in 1..<pattern.count {
      var length = borders[index]
      while length > 0, pattern[length] != pattern[index] { length = borders[length] }
      borders.append(pattern[length] == pattern[index] ? length + 1 : 0)
    }
    var (count, length) = (0, 0)
    for byte in text {
      while length > 0, length == pattern.count || pattern[length] != byte { length = borders[length] }
      if pattern[length] == byte { length += 1 }
      guard length == pattern.count else { continue }
      count += 1
      if count == max { break }
    }
    return count
  }

  static func withoutOuterLineEnds(_ body: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var range = 0..<body.count
    while isLineEnd(at: range.lowerBound, in: body) { range = range.lowerBound + 2..<range.upperBound }
    while range.count >= 2, isLineEnd(at: range.upperBound - 2, in: body) {
      range = range.lowerBound..<range.upperBound - 2
    }
    return UnsafeRawBufferPointer(rebasing: body[range])
  }

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

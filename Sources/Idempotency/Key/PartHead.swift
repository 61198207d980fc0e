import Wire

/// The head of a part of a `multipart/form-data` body (RFC 7578, section 4.2), in the plain form that clients write.
///
/// Readers of forms disagree on everything else: some read a folded line, a repeated parameter or spaces around `=`,
/// and some skip them. A head of another form has no reading.
struct PartHead {
  /// The name of a part, as it is written.
  private enum Name {
    /// A token, or the bytes between quotes.
    case plain(UnsafeRawBufferPointer)
    /// The percent-encoded text of an extended value (RFC 8187).
    case extended(UnsafeRawBufferPointer)
  }

  /// The relation of a part to the field that is searched for.
  enum Match {
    case other
    case field
    /// Readers may disagree on whether the part is the field.
    case disputed
  }

  private var name: Name?
  /// The parameters with the names of a file, each from its semicolon on, as positions in the fields.
  private(set) var fileNames: [Range<Int>] = []
  private var hasFileName = false
  private var hasExtendedFileName = false
  /// Whether the content has a transfer encoding, which some readers undo.
  private var isCoded = false
  private var hasDisposition = false

  /// Reads the field lines of a part; `nil` unless each is well formed, and one `Content-Disposition` names the part.
  ///
  /// - Parameter fields: The lines without the last line's end. They must outlive the value.
  init?(_ fields: UnsafeRawBufferPointer) {
    var start = 0
    while true {
      let end = fields[start...].firstIndex(of: ASCII.carriageReturn) ?? fields.count
      guard readLine(fields[start..<end]) else { return nil }
      guard end < fields.count else { break }
      guard end + 1 < fields.count, fields[end + 1] == ASCII.lineFeed else { return nil }
      start = end + 2
    }
    guard name != nil else { return nil }
  }

  /// The part's relation to the field with this name.
  ///
  /// - Parameter takesFiles: Whether a part with this name that is a file, or whose content is coded, is no doubt meant.
  func match(_ wanted: String, takesFiles: Bool) -> Match {
    guard takesFiles, case .plain(let bytes) = name, !bytes.contains(Self.backslash),
      bytes.elementsEqual(wanted.utf8)
    else { return match(wanted) }
    return .field
  }

  /// The part's relation to the field with this name, which is no file.
  func match(_ wanted: String) -> Match {
    switch name {
    case .plain(let bytes) where bytes.elementsEqual(wanted.utf8) && !bytes.contains(Self.backslash):
      return hasFileName || hasExtendedFileName || isCoded ? .disputed : .field
    case .plain(let bytes):
      // Readers differ on what a backslash escapes, and browsers encode quotes in percent.
      let isEscaped = bytes.lazy.filter { $0 != Self.backslash }
        .elementsEqual(wanted.utf8.lazy.filter { $0 != Self.backslash })
      return isEscaped || Self.isTrimmed(bytes, wanted) || PercentText(bytes, as: .decoded).reads(wanted)
        ? .disputed : .other
    case .extended(let text): return PercentText(text, as: .decoded).reads(wanted) ? .disputed : .other
    case nil: return .disputed
    }
  }

  /// Whether the name is the wanted one behind a byte order mark or between spaces, which some readers drop.
  private static func isTrimmed(_ name: UnsafeRawBufferPointer, _ wanted: String) -> Bool {
    var name = name[...]
    if name.starts(with: [0xEF, 0xBB, 0xBF]) { name = name.dropFirst(3) }
    return MessageHead.trimmed(name).elementsEqual(wanted.utf8)
  }

  private static let backslash = UInt8(ascii: "\\")
  private static let semicolon = UInt8(ascii: ";")
  private static let fileParameters: [StaticString] = [
    "size", "creation-date", "modification-date", "read-date",
  ]
}

// The field lines. Each function returns false for what is not plain.
extension PartHead {
  private mutating func readLine(_ line: Slice<UnsafeRawBufferPointer>) -> Bool {
    guard let colon = line.firstIndex(of: ASCII.colon), colon > line.startIndex,
      line[..<colon].allSatisfy(ASCII.isTokenByte), !line[colon...].contains(where: Self.isControl)
    else { return false }
    let name = UnsafeRawBufferPointer(rebasing: line[..<colon])
    let text = MessageHead.trimmed(line[(colon + 1)...])
    let value = UnsafeRawBufferPointer(rebasing: text)
    if ASCII.equalsIgnoringCase(name, "content-disposition") {
      return readDisposition(value, at: text.startIndex)
    }
    if ASCII.equalsIgnoringCase(name, "content-transfer-encoding"), !Self.isIdentity(value) { isCoded = true }
    return true
  }

  private static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 && byte != ASCII.tab || byte == 0x7F }

  /// Whether the content is sent as it is (RFC 2045, section 6.2).
  private static func isIdentity(_ encoding: UnsafeRawBufferPointer) -> Bool {
    ASCII.equalsIgnoringCase(encoding, "8bit") || ASCII.equalsIgnoringCase(encoding, "7bit")
      || ASCII.equalsIgnoringCase(encoding, "binary")
  }

  /// - Parameter offset: The position of the value in the fields.
  private mutating func readDisposition(_ value: UnsafeRawBufferPointer, at offset: Int) -> Bool {
    guard !hasDisposition else { return false }
    hasDisposition = true
    var position = value.firstIndex(of: Self.semicolon) ?? value.count
    let type = UnsafeRawBufferPointer(rebasing: value[..<position])
    guard ASCII.equalsIgnoringCase(type, "form-data") else { return false }
    while position < value.count {
      guard value[position] == Self.semicolon else { return false }
      let start = position
      position += 1
      while position < value.count, value[position] == ASCII.space || value[position] == ASCII.tab {
        position += 1
      }
      guard let parameter = Parameter(value, at: position), take(parameter) else { return false }
      position = parameter.end
      if parameter.namesFile { fileNames.append(offset + start..<offset + position) }
    }
    return true
  }

  /// Takes a parameter, each once.
  private mutating func take(_ parameter: Parameter) -> Bool {
    switch parameter.name {
    case let name where ASCII.equalsIgnoringCase(name, "name"):
      guard self.name == nil, parameter.isPlainName else { return false }
      self.name = .plain(parameter.value)
    case let name where ASCII.equalsIgnoringCase(name, "name*"):
      guard self.name == nil, let text = parameter.extendedText else { return false }
      self.name = .extended(text)
    case let name where ASCII.equalsIgnoringCase(name, "filename"):
      guard !hasFileName else { return false }
      hasFileName = true
    case let name where ASCII.equalsIgnoringCase(name, "filename*"):
      guard !hasExtendedFileName else { return false }
      hasExtendedFileName = true
    // The parameters of files that RFC 2183 knows besides, and no others: some readers put a name together of pieces
    // (RFC 2231).
    case let name where Self.fileParameters.contains(where: { ASCII.equalsIgnoringCase(name, $0) }): break
    default: return false
    }
    return true
  }

  /// One `name=value`, without spaces around `=`.
  private struct Parameter {
    let name: UnsafeRawBufferPointer
    /// A token, or the bytes between quotes, in which a backslash still stands before what it escapes.
    let value: UnsafeRawBufferPointer
    let isQuoted: Bool
    /// The offset after the value.
    let end: Int

    init?(_ bytes: UnsafeRawBufferPointer, at start: Int) {
      let equals = Self.tokenEnd(bytes, from: start)
      guard equals > start, equals < bytes.count, bytes[equals] == UInt8(ascii: "=") else { return nil }
      let first = equals + 1
      isQuoted = first < bytes.count && bytes[first] == UInt8(ascii: "\"")
      name = UnsafeRawBufferPointer(rebasing: bytes[start..<equals])
      if isQuoted {
        guard let quote = Self.quoteEnd(bytes, from: first + 1) else { return nil }
        value = UnsafeRawBufferPointer(rebasing: bytes[first + 1..<quote])
        end = quote + 1
      } else {
        end = Self.tokenEnd(bytes, from: first)
        guard end > first else { return nil }
        value = UnsafeRawBufferPointer(rebasing: bytes[first..<end])
      }
      // A reader that knows no escapes ends the value at an escaped quote, and reads on behind the semicolon.
      guard !value.contains(PartHead.backslash) || !value.contains(PartHead.semicolon) else { return nil }
    }

    /// Whether it has the name of a file.
    var namesFile: Bool {
      ASCII.equalsIgnoringCase(name, "filename") || ASCII.equalsIgnoringCase(name, "filename*")
    }

    private static func tokenEnd(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
      bytes[start...].firstIndex { !ASCII.isTokenByte($0) } ?? bytes.count
    }

    /// The offset of the quote that ends a string; `nil` if there is none.
    private static func quoteEnd(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
      var position = start
      while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
        position += bytes[position] == PartHead.backslash ? 2 : 1
      }
      return position < bytes.count ? position : nil
    }

    /// Whether all readers take the value for the same name, but for escapes.
    ///
    /// Some take single quotes for quotes, some end a value at any semicolon, and some decode encoded words (RFC 2047).
    var isPlainName: Bool {
      guard isQuoted || !value.contains(UInt8(ascii: "'")), !value.contains(PartHead.semicolon) else {
        return false
      }
      return !zip(value, value.dropFirst()).contains { $0 == UInt8(ascii: "=") && $1 == UInt8(ascii: "?") }
    }

    /// The encoded text of a value such as `utf-8''caf%C3%A9`; `nil` for another charset.
    var extendedText: UnsafeRawBufferPointer? {
      let quote = UInt8(ascii: "'")
      guard !isQuoted, let charset = value.firstIndex(of: quote),
        ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: value[..<charset]), "utf-8"),
        let language = value[(charset + 1)...].firstIndex(of: quote)
      else { return nil }
      let text = UnsafeRawBufferPointer(rebasing: value[(language + 1)...])
      return PercentText.isWellFormed(text) ? text : nil
    }
  }
}

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

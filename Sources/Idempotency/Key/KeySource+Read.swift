import NIOCore
import Wire

extension KeySource {
  /// The result of reading one value. The sources that make a key from other values have none of their own.
  func read(head: MessageHead, query: ByteBuffer?, body: ByteBuffer) -> KeyReading {
    switch self {
    case .header(let name):
      switch head.find(name) {
      case .absent: .none
      case .repeated: Self.readEqual(head.fields(named: name).map(\.valueRange), of: head)
      case .once(let value): head.withBytes(value) { HeaderKey.read($0) }
      }
    case .query(let name): Self.readQuery(name, in: query)
    case .json, .form: readBody(body, head: head)
    case .payload, .composite: .none
    }
  }

  /// The key of a field in several lines, which must be equal: clients and libraries that both set it write it twice.
  private static func readEqual(_ values: [Range<Int>], of head: MessageHead) -> KeyReading {
    guard let first = values.first else { return .none }
    let areEqual = head.withBytes(first) { first in
      values.dropFirst().allSatisfy { value in head.withBytes(value) { $0.elementsEqual(first) } }
    }
    return areEqual ? head.withBytes(first) { HeaderKey.read($0) } : .fault(.repeated)
  }

  /// The result of reading a source in the body. A form is read by its media type, and JSON from any body that parses.
  /// A body with a content coding has no key.
  private func readBody(_ body: ByteBuffer, head: MessageHead) -> KeyReading {
    guard !head.hasContentCoding else { return .none }
    return switch self {
    case .header, .query, .payload, .composite: .none
    case .json(let pointer): body.withUnsafeReadableBytes { Self.readJSON(pointer, in: $0) ?? .none }
    case .form(let name): body.withUnsafeReadableBytes { Self.readForm(name, in: $0, head: head) }
    }
  }

  /// Whether the body is of the source's kind by its media type, and cannot be read. JSON is looked for in bodies of
  /// all types, so that any one but an image or the like may be JSON that is coded, in another encoding of Unicode, or
  /// begins as JSON and has an error that some readers overlook. A body with an ambiguous type may be of any kind, and
  /// Rack takes one without a type for a form, and any multipart type for that of forms.
  func mayHide(in body: ByteBuffer, _ head: MessageHead) -> Bool {
    let type = MediaType.unambiguous(head)
    switch (self, type?.kind) {
    case (.json, nil):
      return head.hasContentCoding || MediaType.isAmbiguous(head)
        || body.withUnsafeReadableBytes { Self.beginsAsUnicode($0) || Self.isMalformedJSON($0) }
    case (.json, .json):
      return head.hasContentCoding || body.withUnsafeReadableBytes { (try? JSONParser.parse($0)) == nil }
    case (.json, .other), (.json, .urlencoded), (.json, .multipart):
      guard type?.isMedia(in: head) == false else { return false }
      return head.hasContentCoding
        || body.withUnsafeReadableBytes { Self.beginsAsOtherUnicode($0) || Self.isMalformedJSON($0) }
    case (.form(let name), nil):
      guard !head.hasContentCoding, !MediaType.isAmbiguous(head) else { return true }
      return body.withUnsafeReadableBytes { bytes in
        guard case .absent = FormPairs.find(name, in: bytes, as: .form) else { return true }
        return FormPairs.mayHide(name, in: bytes)
      }
    case (.form, .other): return type?.isMultipart(in: head) == true
    case (.form(let name), .urlencoded):
      return head.hasContentCoding || body.withUnsafeReadableBytes { FormPairs.mayHide(name, in: $0) }
    case (.form(let name), .multipart):
      guard !head.hasContentCoding, let boundary = type?.boundary(in: head) else { return true }
      return body.withUnsafeReadableBytes { bytes in
        guard let (form, text) = Multipart.plain(bytes, boundary: boundary) else { return true }
        guard case .unreadable = form.field(named: name, in: text) else { return false }
        return true
      }
    case (.header, _), (.query, _), (.form, .json), (.payload, _), (.composite, _): return false
    }
  }

  /// Whether a body that Semel does not read as JSON may be some in another encoding of Unicode: it begins with a byte
  /// order mark, or with a zero beside an ASCII character.
  private static func beginsAsUnicode(_ body: UnsafeRawBufferPointer) -> Bool {
    body.prefix(4).contains(0) || byteOrderMarks.contains { body.starts(with: $0) }
  }

  private static let byteOrderMarks: [[UInt8]] = [[0xEF, 0xBB, 0xBF], [0xFE, 0xFF], [0xFF, 0xFE]]

  /// Whether a body of another type begins with a byte order mark, or with a bracket of JSON in UTF-16 or UTF-32.
  /// Binary bodies may well begin with other zeros.
  private static func beginsAsOtherUnicode(_ body: UnsafeRawBufferPointer) -> Bool {
    if byteOrderMarks.contains(where: { body.starts(with: $0) }) { return true }
    guard body.prefix(4).contains(0), let first = body.prefix(4).first(where: { $0 != 0 }) else {
      return false
    }
    return first == JSONByte.openBrace || first == JSONByte.openBracket
  }

  /// Whether a body begins as JSON and is none.
  private static func isMalformedJSON(_ body: UnsafeRawBufferPointer) -> Bool {
    JSONDocument.mayBegin(body) && (try? JSONParser.parse(body)) == nil
  }

  static func readQuery(_ name: String, in query: ByteBuffer?) -> KeyReading {
    guard let query, query.readableBytes > 0 else { return .none }
    return query.withUnsafeReadableBytes { pairs(name, in: $0, as: .decoded, max: FormPairs.maxParameters) }
  }

  private static func readForm(_ name: String, in body: UnsafeRawBufferPointer, head: MessageHead)
    -> KeyReading
  {
    guard let type = MediaType.unambiguous(head) else { return .none }
    switch type.kind {
    case .json, .other: return .none
    case .urlencoded: return pairs(name, in: body, as: .form)
    case .multipart:
      guard let boundary = type.boundary(in: head),
        let (form, text) = Multipart.plain(body, boundary: boundary)
      else { return .none }
      switch form.field(named: name, in: text) {
      case .absent, .unreadable: return .none
      case .repeated: return .fault(.repeated)
      case .once(let content): return self.text(Array(text[content]))
      }
    }
  }

  /// The result of reading a member; `nil` if the body is not JSON.
  static func readJSON(_ pointer: String, in body: UnsafeRawBufferPointer) -> KeyReading? {
    guard let pointer = JSONPointer(pointer), let document = try? JSONParser.parse(body) else { return nil }
    switch document.find(pointer) {
    case .absent: return KeyReading.none
    case .ambiguous: return .fault(.repeated)
    case .string(let content): return text(Array(IteratorSequence(JSONText(content))))
    case .integer(let digits): return .key(Array(digits))
    case .decimal, .other: return .fault(.wrongType)
    }
  }

  private static func pairs(
    _ name: String, in text: UnsafeRawBufferPointer, as reading: PercentText.Reading, max: Int = .max
  ) -> KeyReading {
    switch FormPairs.find(name, in: text, as: reading, max: max) {
    case .absent: return .none
    case .repeated: return .fault(.repeated)
    case .tooMany: return .fault(.hidden)
    case .once(let range):
      let value = UnsafeRawBufferPointer(rebasing: text[range])
      guard PercentText.isWellFormed(value) else { return .fault(.malformedEncoding) }
      return self.text(Array(IteratorSequence(PercentText(value, as: reading))))
    }
  }

  private static func text(_ bytes: [UInt8]) -> KeyReading { bytes.isEmpty ? .none : .key(bytes) }
}

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

extension FormPairs {
  /// Whether some readers find the field in a form that has it not by the rules: those that end a pair at a semicolon,
  /// too, that drop spaces and control characters around a name, or what follows a NUL in it. Beyond `max` pairs it may
  /// be anywhere.
  static func mayHide(_ field: String, in text: UnsafeRawBufferPointer, max: Int = .max) -> Bool {
    var start = 0
    var isPair = true
    var left = max
    while start <= text.count {
      guard left > 0 else { return true }
      left -= 1
      var end = start
      while end < text.count, text[end] != UInt8(ascii: "&"), text[end] != UInt8(ascii: ";") { end += 1 }
      let ends = end == text.count || text[end] == UInt8(ascii: "&")
      let piece = UnsafeRawBufferPointer(rebasing: text[start..<end])
      let name = UnsafeRawBufferPointer(rebasing: piece.prefix { $0 != UInt8(ascii: "=") })
      let isPlain = isPair && ends && PercentText(name, as: .form).reads(field)
      if !isPlain, reads(PercentText(name, as: .form), roughlyAs: field) { return true }
      isPair = ends
      start = end + 1
    }
    return false
  }

  /// Whether some readers take a name for that of the field, without what they drop of it.
  static func reads(_ name: PercentText, roughlyAs field: String) -> Bool {
    var name = name
    var byte = name.next()
    while let space = byte, space <= ASCII.space { byte = name.next() }
    for wanted in field.utf8 {
      guard byte == wanted else { return false }
      byte = name.next()
    }
    while let space = byte, space != 0, space <= ASCII.space { byte = name.next() }
    return byte == nil || byte == 0
  }
}

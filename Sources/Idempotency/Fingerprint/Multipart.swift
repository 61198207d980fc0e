import NIOCore
import Wire

/// The parts of a `multipart/form-data` body (RFC 7578), as positions in it.
struct Multipart {
  struct Part {
    /// The part's field lines, without the empty line after them.
    var fields: Range<Int>
    var content: Range<Int>
  }

  let parts: [Part]

  init(parts: [Part]) { self.parts = parts }

  /// Divides a body; `nil` unless it consists of parts between delimiters, from the first delimiter to the closing one.
  /// Any other body is fingerprinted as plain bytes.
  ///
  /// The time is linear, because no boundary contains the CR at which a delimiter begins.
  init?(_ body: UnsafeRawBufferPointer, boundary: [UInt8]) {
    guard let opening = Delimiter(at: 0, in: body, boundary: boundary, isFirst: true), !opening.isClosing
    else {
      return nil
    }
    var parts: [Part] = []
    var start = opening.end
    while let delimiter = Delimiter.next(from: start - 2, in: body, boundary: boundary) {
      guard let part = Self.part(from: start, to: max(start, delimiter.start), in: body) else { return nil }
      parts.append(part)
      start = delimiter.end
      guard !delimiter.isClosing else {
        guard start == body.count else { return nil }
        self.parts = parts
        return
      }
    }
    return nil
  }

  /// Splits a part at its first empty line.
  private static func part(from start: Int, to end: Int, in body: UnsafeRawBufferPointer) -> Part? {
    if end - start >= 2, isLineEnd(at: start, in: body) {
      return Part(fields: start..<start, content: start + 2..<end)
    }
    var position = start
    while position + 4 <= end {
      if isLineEnd(at: position, in: body), isLineEnd(at: position + 2, in: body) {
        return Part(fields: start..<position, content: position + 4..<end)
      }
      position += 1
    }
    return nil
  }

  static func isLineEnd(at position: Int, in body: UnsafeRawBufferPointer) -> Bool {
    position + 2 <= body.count && body[position] == ASCII.carriageReturn
      && body[position + 1] == ASCII.lineFeed
  }
}

extension Multipart {
  /// A delimiter: `--boundary` at the beginning of a line, and the rest of that line.
  private struct Delimiter {
    /// The offset of the delimiter, including the line's end before it.
    var start: Int
    /// The offset after the line's end.
    var end: Int
    var isClosing: Bool

    static func next(from position: Int, in body: UnsafeRawBufferPointer, boundary: [UInt8]) -> Delimiter? {
      var position = position
      while position < body.count {
        if body[position] == ASCII.carriageReturn,
          let found = Delimiter(at: position, in: body, boundary: boundary, isFirst: false)
        {
          return found
        }
        position += 1
      }
      return nil
    }

    init?(at start: Int, in body: UnsafeRawBufferPointer, boundary: [UInt8], isFirst: Bool) {
      var position = start
      if !isFirst {
        guard Multipart.isLineEnd(at: position, in: body) else { return nil }
        position += 2
      }
      guard position + 2 + boundary.count <= body.count, body[position] == UInt8(ascii: "-"),
        body[position + 1] == UInt8(ascii: "-")
      else { return nil }
      position += 2
      for index in 0..<boundary.count where body[position + index] != boundary[index] { return nil }
      position += boundary.count
      isClosing =
        position + 2 <= body.count && body[position] == UInt8(ascii: "-")
        && body[position + 1] == UInt8(ascii: "-")
      if isClosing { position += 2 }
      while position < body.count, body[position] == ASCII.space || body[position] == ASCII.tab {
        position += 1
      }
      if Multipart.isLineEnd(at: position, in: body) {
        position += 2
      } else if !isClosing || position < body.count {
        return nil
      }
      self.start = start
      end = position
    }
  }
}

extension Multipart {
  /// Writes the fields and content of every part in order, each after its length. The boundary is not written.
  func write(_ body: UnsafeRawBufferPointer, to hash: inout FramedHash) {
    hash.number(parts.count)
    for part in parts {
      hash.frame(UnsafeRawBufferPointer(rebasing: body[part.fields]))
      hash.frame(UnsafeRawBufferPointer(rebasing: body[part.content]))
    }
  }
}

/// The contents of a `Content-Type` field, as positions in the head.
struct MediaType {
  /// The way in which a body of this type can be read.
  enum Kind: Sendable { case json, urlencoded, multipart, other }

  /// The type and subtype, without parameters and without the white space around them.
  let essence: Range<Int>
  /// The part after the first semicolon.
  let parameters: Range<Int>
  let kind: Kind

  init(value: Range<Int>, in bytes: UnsafeRawBufferPointer) {
    let semicolon = ASCII.index(of: UInt8(ascii: ";"), in: bytes, value)
    let essence = MessageHead.trimmed(bytes[value.lowerBound..<(semicolon ?? value.upperBound)])
    self.essence = essence.startIndex..<essence.endIndex
    parameters = (semicolon.map { $0 + 1 } ?? value.upperBound)..<value.upperBound
    kind = Self.kind(UnsafeRawBufferPointer(rebasing: essence))
  }

  private static func kind(_ essence: UnsafeRawBufferPointer) -> Kind {
    switch essence.count {
    case 16 where ASCII.equalsIgnoringCase(essence, "application/json"): .json
    case 9 where ASCII.equalsIgnoringCase(essence, "text/json"): .json
    case 33 where ASCII.equalsIgnoringCase(essence, "application/x-www-form-urlencoded"): .urlencoded
    case 19 where ASCII.equalsIgnoringCase(essence, "multipart/form-data"): .multipart
    case 6...
    where ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: essence.suffix(5)), "+json")
      && essence.contains(UInt8(ascii: "/")):
      .json
    default: .other
    }
  }
}

extension MessageHead {
  /// Whether the one media type of the request is JSON.
  public var declaresJSON: Bool { MediaType.of(self)?.kind == .json }

  /// Whether the one media type of the request is that of a form.
  public var declaresForm: Bool {
    // The shortest name of such a type has this length, which most values do not.
    guard let field = first(.contentType), field.valueLength >= 19, let kind = MediaType.of(self)?.kind else {
      return false
    }
    return kind == .urlencoded || kind == .multipart
  }
}

extension MediaType {
  /// The media type of a head with one `Content-Type`; `nil` if there is none, or more than one.
  static func of(_ head: MessageHead) -> MediaType? {
    guard head.count(.contentType) == 1, let field = head.first(.contentType) else { return nil }
    return head.bytes.withUnsafeReadableBytes { MediaType(value: field.valueRange, in: $0) }
  }

  /// The media type of a head of which all readers take the same one; `nil` if there is none, or it is ambiguous.
  static func unambiguous(_ head: MessageHead) -> MediaType? { isAmbiguous(head) ? nil : of(head) }

  /// The maximum length of a field that readers agree on, in bytes.
  private static let maxBytes = 1024

  /// Whether readers may take different media types from a head: it has several `Content-Type`, or one that is a list,
  /// that some readers end at a space, or that is too long for some.
  static func isAmbiguous(_ head: MessageHead) -> Bool {
    guard let field = head.first(.contentType) else { return false }
    guard head.count(.contentType) == 1, field.valueLength <= maxBytes else { return true }
    return head.bytes.withUnsafeReadableBytes { bytes in
      isList(bytes[field.valueRange])
        || bytes[MediaType(value: field.valueRange, in: bytes).essence].contains {
          $0 == ASCII.space || $0 == ASCII.tab
        }
    }
  }

  /// Whether the value has a comma outside of quotes, or a quote without an end.
  private static func isList(_ value: Slice<UnsafeRawBufferPointer>) -> Bool {
    var isQuoted = false
    var isEscaped = false
    for byte in value {
      switch byte {
      case _ where isEscaped: isEscaped = false
      case UInt8(ascii: "\\"): isEscaped = isQuoted
      case UInt8(ascii: "\""): isQuoted.toggle()
      case ASCII.comma where !isQuoted: return true
      default: break
      }
    }
    return isQuoted
  }

  /// Whether the body consists of parts, as forms do that upload files.
  func isMultipart(in head: MessageHead) -> Bool { head.bytes.withUnsafeReadableBytes(isMultipart) }

  /// Whether the body consists of parts.
  ///
  /// - Parameter bytes: The bytes to which the positions refer.
  func isMultipart(in bytes: UnsafeRawBufferPointer) -> Bool { hasType(["multipart/"], in: bytes) }

  /// Whether the body is an image, a sound, a film or a font.
  func isMedia(in head: MessageHead) -> Bool {
    head.bytes.withUnsafeReadableBytes { hasType(["image/", "audio/", "video/", "font/"], in: $0) }
  }

  private func hasType(_ types: [StaticString], in bytes: UnsafeRawBufferPointer) -> Bool {
    let essence = bytes[essence]
    return types.contains {
      ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: essence.prefix($0.utf8CodeUnitCount)), $0)
    }
  }

  /// The boundary between the parts of a multipart body; `nil` unless it is given once and has 1 to 70 bytes (RFC 2046,
  /// section 5.1.1).
  func boundary(in head: MessageHead) -> [UInt8]? {
    let found = head.withBytes(parameters) { HeaderParameters($0).values(of: "boundary") }
    guard found.count == 1, 1...70 ~= found[0].count else { return nil }
    return found[0]
  }
}

/// The `name=value` parameters of a field, separated by semicolons (RFC 9110, section 5.6.6).
struct HeaderParameters {
  /// The positions of one parameter. A quoted value is that between its quotes, in which a backslash still stands before
  /// what it escapes; one without `=` is empty.
  struct Parameter {
    fileprivate let name: Range<Int>
    let value: Range<Int>
    fileprivate let isQuoted: Bool
  }

  private let bytes: UnsafeRawBufferPointer
  private let range: Range<Int>

  /// Prepares the parameters of a field for reading.
  ///
  /// - Parameter bytes: The part of the field after its first semicolon.
  init(_ bytes: UnsafeRawBufferPointer) { self.init(bytes, in: 0..<bytes.count) }

  /// Prepares the parameters in a range of bytes, to which all positions refer.
  init(_ bytes: UnsafeRawBufferPointer, in range: Range<Int>) {
    self.bytes = bytes
    self.range = range
  }

  var isEmpty: Bool { range.isEmpty }

  /// The maximum number of parameters that are read: media types have a few.
  private static let maxParameters = 64

  /// The values of the parameters with this name, unquoted, among those that are read.
  func values(of lowercased: StaticString) -> [[UInt8]] {
    all.filter { ASCII.equalsIgnoringCase(name($0), lowercased) }.map(value)
  }

  /// The parameters in their order.
  var all: some Sequence<Parameter> {
    sequence(state: (position: range.lowerBound, left: Self.maxParameters)) { state -> Parameter? in
      guard state.position < range.upperBound, state.left > 0 else { return nil }
      let (parameter, end) = parameter(from: state.position)
      state = (end + 1, state.left - 1)
      return parameter
    }
  }

  func name(_ parameter: Parameter) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: bytes[parameter.name])
  }

  /// The value, unquoted.
  func value(_ parameter: Parameter) -> [UInt8] {
    guard parameter.isQuoted else { return Array(bytes[parameter.value]) }
    var value: [UInt8] = []
    var position = parameter.value.lowerBound
    while position < parameter.value.upperBound {
      if bytes[position] == Self.backslash, position + 1 < range.upperBound { position += 1 }
      value.append(bytes[position])
      position += 1
    }
    return value
  }

  private static let backslash = UInt8(ascii: "\\")
  private static let quote = UInt8(ascii: "\"")

  private func parameter(from start: Int) -> (Parameter, end: Int) {
    var position = start
    while position < range.upperBound, bytes[position] != UInt8(ascii: ";"),
      bytes[position] != UInt8(ascii: "=")
    {
      position += 1
    }
    let name = trimmed(start..<position)
    guard position < range.upperBound, bytes[position] == UInt8(ascii: "=") else {
      return (Parameter(name: name, value: position..<position, isQuoted: false), position)
    }
    position += 1
    if position < range.upperBound, bytes[position] == Self.quote {
      let end = quotedEnd(from: position + 1)
      return (Parameter(name: name, value: position + 1..<end, isQuoted: true), semicolon(from: end))
    }
    let end = semicolon(from: position)
    return (Parameter(name: name, value: trimmed(position..<end), isQuoted: false), end)
  }

  private func trimmed(_ range: Range<Int>) -> Range<Int> {
    let slice = MessageHead.trimmed(bytes[range])
    return slice.startIndex..<slice.endIndex
  }

  private func semicolon(from start: Int) -> Int {
    bytes[start..<range.upperBound].firstIndex(of: UInt8(ascii: ";")) ?? range.upperBound
  }

  private func quotedEnd(from start: Int) -> Int {
    var position = start
    while position < range.upperBound, bytes[position] != Self.quote {
      position += bytes[position] == Self.backslash && position + 1 < range.upperBound ? 2 : 1
    }
    return position
  }
}

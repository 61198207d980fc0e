import NIOCore
import Wire

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

import NIOCore
import Wire

/// The second version of the algorithm: two payloads are equal if no reader that Semel knows of can tell them apart.
/// Records refer to it, so its output must never change.
struct RecipeTwo {
  let recipe: Recipe
  let head: MessageHead

  func write(
    method: ByteBuffer, path: ByteBuffer, query: ByteBuffer?, body: ByteBuffer, to hash: inout FramedHash
  ) {
    hash.byte(UInt8(ascii: "F"))
    hash.number(Recipe.Version.two.rawValue)
    method.withUnsafeReadableBytes { hash.frame($0) }
    path.withUnsafeReadableBytes { hash.frame($0) }
    (query ?? ByteBuffer()).withUnsafeReadableBytes {
      FormPairs.writeByMeaning(
        $0, as: .normalised, marksMissing: true, counting: recipe.selection.query, to: &hash)
    }
    writeMediaType(to: &hash)
    OperationFields.write(head, to: &hash)
    recipe.writeHeaders(of: head, to: &hash)
    body.withUnsafeReadableBytes { bytes in
      BodyReading.read(bytes, recipe, head) { write($0, $1, to: &hash) }
    }
  }

  private func writeMediaType(to hash: inout FramedHash) {
    hash.number(head.count(.contentType))
    for field in head.fields where field.name == .contentType {
      head.bytes.withUnsafeReadableBytes { all in
        let type = MediaType(value: field.valueRange, in: all)
        hash.frameLowercased(UnsafeRawBufferPointer(rebasing: all[type.essence]))
        write(HeaderParameters(all, in: type.parameters), to: &hash)
      }
    }
  }

  /// Writes the parameters that state the operation, in the order of their names.
  private func write(_ parameters: HeaderParameters, to hash: inout FramedHash) {
    if !parameters.isEmpty {
      for (index, name) in OperationFields.parameters.enumerated() {
        for parameter in parameters.all where ASCII.equalsIgnoringCase(parameters.name(parameter), name) {
          hash.number(index + 1)
          parameters.value(parameter).withUnsafeBytes { hash.frame($0) }
        }
      }
    }
    hash.number(0)
  }

  private func write(
    _ reading: BodyReading, _ content: UnsafeRawBufferPointer, to hash: inout FramedHash
  ) {
    hash.byte(reading.form.rawValue)
    switch reading {
    case .none: break
    case .raw: hash.bytes(content)
    case .json(let document, _):
      CanonicalJSON.write(document, by: recipe.selection.members, .byValue, to: &hash)
    case .urlencoded:
      FormPairs.writeByMeaning(
        content, as: .form, marksMissing: false, counting: recipe.selection.form, to: &hash)
    case .multipart(let parts): parts.write(counting: recipe.selection.parts, to: &hash)
    case .coded:
      head.writeContentCodings(to: &hash)
      hash.bytes(content)
    }
  }
}

/// The form in which the second recipe reads a body.
enum BodyReading {
  /// The form's number. The bytes of a body begin with it, so that no two forms collide, and it must never change.
  enum Form: UInt8 { case none, raw, json, urlencoded, multipart, coded }

  case none, raw
  /// A document, and whether the media type declares one.
  case json(JSONDocument, isDeclared: Bool)
  case urlencoded
  case multipart(NestedParts)
  /// The bytes of a coding that is not undone.
  case coded

  var form: Form {
    switch self {
    case .none: .none
    case .raw: .raw
    case .json: .json
    case .urlencoded: .urlencoded
    case .multipart: .multipart
    case .coded: .coded
    }
  }

  /// Calls `visit` with the reading of a body, and with the body's content.
  static func read<Result>(
    _ body: UnsafeRawBufferPointer, _ recipe: Recipe, _ head: MessageHead,
    _ visit: (BodyReading, UnsafeRawBufferPointer) -> Result
  ) -> Result {
    switch recipe.body {
    case .none: return visit(.none, body)
    case .auto where recipe.selection.leavesOutBody: return visit(.none, body)
    case .raw: return visit(.raw, body)
    case .auto where head.hasContentCoding:
      let result = ContentCoding(of: head)?.withContent(of: body, limit: recipe.contentLimit) { content in
        visit(reading(content, recipe, head), content)
      }
      return result ?? visit(.coded, body)
    case .auto: return visit(reading(body, recipe, head), body)
    }
  }

  private static func reading(
    _ content: UnsafeRawBufferPointer, _ recipe: Recipe, _ head: MessageHead
  ) -> BodyReading {
    let type = MediaType.of(head)
    let isDeclared = type?.kind == .json
    // Members are looked for in any text that is JSON: some senders declare another type.
    if isDeclared || recipe.selection.readsAnyType && JSONDocument.mayBegin(content),
      let document = try? JSONParser.parse(content), !document.hasDuplicates
    {
      return .json(document, isDeclared: isDeclared)
    }
    guard let type else { return .raw }
    if type.kind == .urlencoded { return .urlencoded }
    if type.isMultipart(in: head), let boundary = type.boundary(in: head),
      let parts = NestedParts(content, boundary: boundary)
    {
      return .multipart(parts)
    }
    return .raw
  }
}

extension JSONDocument {
  /// Whether a text begins as an object or an array does, so that it may be JSON whatever its type says.
  static func mayBegin(_ text: UnsafeRawBufferPointer) -> Bool {
    guard let first = text.first(where: { !JSONByte.isSpace($0) }) else { return false }
    return first == JSONByte.openBrace || first == JSONByte.openBracket
  }
}

extension Recipe {
  /// Calls `visit` with a body that the recipe compares by its members, and with the equality of its numbers; `nil` for
  /// any other body.
  func withDocument<Result>(
    in body: UnsafeRawBufferPointer, _ head: MessageHead,
    _ visit: (JSONDocument, CanonicalJSON.Numbers) -> Result
  ) -> Result? {
    switch version {
    case .one:
      guard self.body == .auto, !head.hasContentCoding, MediaType.of(head)?.kind == .json,
        let document = try? JSONParser.parse(body), !document.hasDuplicates
      else { return nil }
      return visit(document, .asWritten)
    case .two:
      return BodyReading.read(body, self, head) { reading, _ in
        guard case .json(let document, _) = reading else { return nil }
        return visit(document, .byValue)
      }
    }
  }

  /// The number of bytes of content that reading a body's payload may take besides the body: that of a compressed one.
  public func contentBytes(of body: ByteBuffer, _ head: MessageHead) -> Int {
    guard version != .one, self.body == .auto, !selection.leavesOutBody, head.hasContentCoding,
      let coding = ContentCoding(of: head)
    else { return 0 }
    return body.withUnsafeReadableBytes { coding.contentBound(of: $0, limit: contentLimit) } ?? 0
  }

  /// Whether the pairs of a query are compared whatever their order.
  public func sorts(_ query: ByteBuffer) -> Bool {
    version == .one
      || query.withUnsafeReadableBytes {
        FormPairs.isSortable($0, as: .normalised, counting: selection.query)
      }
  }

  /// The form in which the recipe reads a body, for operators.
  public func form(of body: ByteBuffer, _ head: MessageHead) -> PayloadForm {
    body.withUnsafeReadableBytes { bytes in
      BodyReading.read(bytes, self, head) { reading, content in
        switch reading {
        case .none: .none
        case .raw: .raw
        case .json(_, let isDeclared): isDeclared ? .json : .jsonByText
        case .urlencoded:
          FormPairs.isSortable(content, as: .form, counting: selection.form) ? .pairs : .orderedPairs
        case .multipart: .parts
        case .coded: .coded
        }
      }
    }
  }
}

/// The form in which a payload is compared, for operators.
public enum PayloadForm: Sendable {
  case none, raw, json
  /// JSON by the body's text, whatever its media type is.
  case jsonByText
  /// The pairs of a form, whose order does not matter, or does.
  case pairs, orderedPairs
  case parts
  /// The bytes of a compressed body whose content is not read.
  case coded
}

import NIOCore
import Wire

/// A SHA-256 digest over the parts of a payload, and the recipe that it was made with.
public struct Fingerprint: Hashable, Sendable {
  public var recipe: Recipe
  public var digest: Digest256

  public init(recipe: Recipe, digest: Digest256) {
    self.recipe = recipe
    self.digest = digest
  }
}

extension Fingerprint {
  /// The fingerprint of a request's payload.
  ///
  /// - Parameters:
  ///   - path: The normalised path, as it is matched and forwarded.
  ///   - query: The part after `?`. A missing query and an empty one are the same.
  public static func make(
    recipe: Recipe, head: MessageHead, method: ByteBuffer, path: ByteBuffer, query: ByteBuffer?,
    body: ByteBuffer
  ) -> Fingerprint {
    let digest = FramedHash.digest { hash in
      switch recipe.version {
      case .one:
        RecipeOne(recipe: recipe, head: head).write(
          method: method, path: path, query: query, body: body, to: &hash)
      case .two:
        RecipeTwo(recipe: recipe, head: head).write(
          method: method, path: path, query: query, body: body, to: &hash)
      }
    }
    return Fingerprint(recipe: recipe, digest: digest)
  }
}

/// The first version of the algorithm. Records refer to it, so its output must never change.
private struct RecipeOne {
  /// The form in which a body is read. Each form's bytes begin with its tag, so that no two forms collide.
  private enum Form: UInt8 {
    case none, raw, json, urlencoded, multipart, coded
  }

  let recipe: Recipe
  let head: MessageHead

  func write(
    method: ByteBuffer, path: ByteBuffer, query: ByteBuffer?, body: ByteBuffer, to hash: inout FramedHash
  ) {
    hash.byte(UInt8(ascii: "F"))
    hash.number(Recipe.Version.one.rawValue)
    method.withUnsafeReadableBytes { hash.frame($0) }
    path.withUnsafeReadableBytes { hash.frame($0) }
    (query ?? ByteBuffer()).withUnsafeReadableBytes {
      FormPairs.write($0, as: .normalised, marksMissing: true, to: &hash)
    }
    writeMediaType(to: &hash)
    recipe.writeHeaders(of: head, to: &hash)
    body.withUnsafeReadableBytes { writeBody($0, to: &hash) }
  }

  private func writeMediaType(to hash: inout FramedHash) {
    hash.number(head.count(.contentType))
    for field in head.fields where field.name == .contentType {
      head.bytes.withUnsafeReadableBytes { all in
        let type = MediaType(value: field.valueRange, in: all)
        hash.frameLowercased(UnsafeRawBufferPointer(rebasing: all[type.essence]))
      }
    }
  }

  private func writeBody(_ body: UnsafeRawBufferPointer, to hash: inout FramedHash) {
    switch recipe.body {
    case .none: hash.byte(Form.none.rawValue)
    case .raw: write(body, as: .raw, to: &hash)
    case .auto where head.hasContentCoding:
      hash.byte(Form.coded.rawValue)
      head.writeContentCodings(to: &hash)
      hash.bytes(body)
    case .auto: writeByMediaType(body, to: &hash)
    }
  }

  private func writeByMediaType(_ body: UnsafeRawBufferPointer, to hash: inout FramedHash) {
    guard let type = MediaType.of(head) else {
      write(body, as: .raw, to: &hash)
      return
    }
    switch type.kind {
    case .json:
      guard let document = try? JSONParser.parse(body), !document.hasDuplicates else { break }
      hash.byte(Form.json.rawValue)
      CanonicalJSON.write(document, by: recipe.selection.members, .asWritten, to: &hash)
      return
    case .urlencoded:
      hash.byte(Form.urlencoded.rawValue)
      FormPairs.write(body, as: .form, marksMissing: false, to: &hash)
      return
    case .multipart:
      guard let boundary = type.boundary(in: head), let multipart = Multipart(body, boundary: boundary) else {
        break
      }
      hash.byte(Form.multipart.rawValue)
      multipart.write(body, to: &hash)
      return
    case .other: break
    }
    write(body, as: .raw, to: &hash)
  }

  private func write(_ body: UnsafeRawBufferPointer, as form: Form, to hash: inout FramedHash) {
    hash.byte(form.rawValue)
    hash.bytes(body)
  }
}

extension Recipe {
  /// Writes the fields that the route's settings name.
  func writeHeaders(of head: MessageHead, to hash: inout FramedHash) {
    hash.number(headers.count)
    for name in headers {
      hash.frame(name)
      let fields = head.fields(named: name)
      hash.number(fields.count)
      for field in fields { head.withBytes(field.valueRange) { hash.frame($0) } }
    }
  }
}

extension MessageHead {
  func writeContentCodings(to hash: inout FramedHash) {
    hash.number(count(.contentEncoding))
    for field in fields where field.name == .contentEncoding {
      withBytes(field.valueRange) { hash.frameLowercased($0) }
    }
  }

  /// Whether the content is compressed or otherwise coded, so that it cannot be read as its media type.
  public var hasContentCoding: Bool {
    for field in fields where field.name == .contentEncoding {
      let isIdentity = withBytes(field.valueRange) { $0.isEmpty || ASCII.equalsIgnoringCase($0, "identity") }
      if !isIdentity { return true }
    }
    return false
  }
}

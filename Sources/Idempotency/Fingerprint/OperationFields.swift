import NIOCore
import Wire

/// The request fields that state the operation itself, or its target, or its condition: two requests that differ in one
/// of them are two operations, however equal their bodies are.
public enum OperationFields {
  /// In lower case. A field's index enters fingerprints, so that this order must never change; a longer list is another
  /// recipe.
  static let names: [StaticString] = [
    "destination", "overwrite", "depth", "x-amz-target", "x-amz-copy-source", "x-goog-copy-source",
    "soapaction", "content-range", "upload-offset", "dropbox-api-arg", "if-match", "if-unmodified-since",
  ]

  /// The names as texts, for settings and rare paths.
  static let texts = names.map { "\($0)" }

  /// The parameters of a media type that do the same, in lower case and in an order that must never change.
  static let parameters: [StaticString] = ["version", "profile", "action"]

  /// Writes the fields of a head, in the order of their names.
  static func write(_ head: MessageHead, to hash: inout FramedHash) {
    let found = present(in: head)
    hash.number(found.nonzeroBitCount)
    guard found != 0 else { return }
    for index in names.indices where found & 1 << UInt16(index) != 0 {
      hash.number(index)
      let fields = head.fields(named: texts[index])
      hash.number(fields.count)
      for field in fields { head.withBytes(field.valueRange) { hash.frame($0) } }
    }
  }

  /// The names of those that a request has.
  public static func names(in head: MessageHead) -> [String] {
    let found = present(in: head)
    return texts.indices.filter { found & 1 << UInt16($0) != 0 }.map { texts[$0] }
  }

  /// The names of the parameters among them that the request's media type has.
  public static func parameters(in head: MessageHead) -> [String] {
    guard let type = MediaType.of(head) else { return [] }
    return head.bytes.withUnsafeReadableBytes { all in
      let own = HeaderParameters(all, in: type.parameters)
      return parameters.filter { !own.values(of: $0).isEmpty }.map { "\($0)" }
    }
  }

  /// One bit for each name that a head has.
  private static func present(in head: MessageHead) -> UInt16 {
    head.bytes.withUnsafeReadableBytes { all in
      var found: UInt16 = 0
      for field in head.fields where field.name == .other {
        let name = UnsafeRawBufferPointer(rebasing: all[field.nameRange])
        if let index = index(of: name) { found |= 1 << UInt16(index) }
      }
      return found
    }
  }

  private static func index(of name: UnsafeRawBufferPointer) -> Int? {
    guard let index = candidate(name), ASCII.equalsIgnoringCase(name, names[index]) else { return nil }
    return index
  }

  /// The only one that a name can be, by its length and first letter.
  private static func candidate(_ name: UnsafeRawBufferPointer) -> Int? {
    guard let first = name.first else { return nil }
    switch (name.count, Unicode.Scalar(first | 0x20)) {
    case (5, "d"): return 2
    case (8, "i"): return 10
    case (9, "o"): return 1
    case (10, "s"): return 6
    case (11, "d"): return 0
    case (12, "x"): return 3
    case (13, "c"): return 7
    case (13, "u"): return 8
    case (15, "d"): return 9
    case (17, "x"): return 4
    case (18, "x"): return 5
    case (19, "i"): return 11
    default: return nil
    }
  }
}

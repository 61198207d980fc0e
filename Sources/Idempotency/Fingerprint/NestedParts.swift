import NIOCore
import Wire

/// The parts of a `multipart` body of any type, without the boundaries that divide them, which a client makes anew for
/// each delivery. A part that is itself divided is read the same way.
struct NestedParts {
  /// The maximum number of bodies within one another that are divided. Each costs a pass over its bytes.
  private static let maxLevels = 4

  private let body: UnsafeRawBufferPointer
  private let parts: [Multipart.Part]
  private let level: Int

  /// Divides a body; `nil` if it is not entirely parts. Line ends before and after it do not matter.
  init?(_ body: UnsafeRawBufferPointer, boundary: [UInt8], level: Int = 1) {
    let text = Multipart.withoutOuterLineEnds(body)
    guard level <= Self.maxLevels, let divided = Multipart(text, boundary: boundary) else { return nil }
    self.body = text
    self.level = level
    parts = divided.parts
  }

  /// Writes the fields and the content of every part in order, each after its length.
  ///
  /// - Parameter selection: The parts that count. The others are written as if they were not there.
  func write(counting selection: PartSelection = .all, to hash: inout FramedHash) {
    let counted =
      selection.isAll
      ? parts : parts.filter { selection.counts(UnsafeRawBufferPointer(rebasing: body[$0.fields])) }
    hash.number(counted.count)
    for part in counted {
      let fields = UnsafeRawBufferPointer(rebasing: body[part.fields])
      let content = UnsafeRawBufferPointer(rebasing: body[part.content])
      if let (boundary, place) = Self.boundary(in: fields),
        let inner = NestedParts(content, boundary: boundary, level: level + 1)
      {
        hash.byte(1)
        hash.frame(UnsafeRawBufferPointer(rebasing: fields[..<place.lowerBound]))
        hash.frame(UnsafeRawBufferPointer(rebasing: fields[place.upperBound...]))
        inner.write(to: &hash)
      } else if selection.dropsFileNames, let names = PartHead(fields)?.fileNames, !names.isEmpty {
        hash.byte(2)
        Self.write(fields, without: names, to: &hash)
        hash.frame(content)
      } else {
        hash.byte(0)
        hash.frame(fields)
        hash.frame(content)
      }
    }
  }

  /// Writes bytes without some of their ranges, which are in order, after the length of what is left.
  private static func write(
    _ bytes: UnsafeRawBufferPointer, without ranges: [Range<Int>], to hash: inout FramedHash
  ) {
    hash.number(ranges.reduce(bytes.count) { $0 - $1.count })
    var start = 0
    for range in ranges {
      hash.bytes(UnsafeRawBufferPointer(rebasing: bytes[start..<range.lowerBound]))
      start = range.upperBound
    }
    hash.bytes(UnsafeRawBufferPointer(rebasing: bytes[start...]))
  }

  /// The boundary that a part's one `Content-Type` states, and its place among the fields; `nil` for any other part.
  private static func boundary(in fields: UnsafeRawBufferPointer) -> (bytes: [UInt8], place: Range<Int>)? {
    var type: Range<Int>?
    var start = 0
    while start < fields.count {
      let end = lineEnd(fields, from: start)
      if isContentType(fields, in: start..<end) {
        guard type == nil else { return nil }
        type = start + name.utf8CodeUnitCount..<end
      }
      start = end + 2
    }
    guard let type else { return nil }
    let media = MediaType(value: type, in: fields)
    guard media.isMultipart(in: fields) else { return nil }
    let parameters = HeaderParameters(fields, in: media.parameters)
    let found = parameters.all.filter { ASCII.equalsIgnoringCase(parameters.name($0), "boundary") }
    guard found.count == 1 else { return nil }
    let boundary = parameters.value(found[0])
    return 1...70 ~= boundary.count ? (boundary, found[0].value) : nil
  }

  private static let name: StaticString = "content-type:"

  /// The end of a field's line, which is folded where a space or a tab begins the next one.
  private static func lineEnd(_ fields: UnsafeRawBufferPointer, from start: Int) -> Int {
    var end = start
    while end < fields.count {
      if Multipart.isLineEnd(at: end, in: fields) {
        let next = end + 2 < fields.count ? fields[end + 2] : 0
        guard next == ASCII.space || next == ASCII.tab else { return end }
      }
      end += 1
    }
    return end
  }

  private static func isContentType(_ fields: UnsafeRawBufferPointer, in line: Range<Int>) -> Bool {
    let length = name.utf8CodeUnitCount
    guard line.count > length else { return false }
    return ASCII.equalsIgnoringCase(
      UnsafeRawBufferPointer(rebasing: fields[line.lowerBound..<line.lowerBound + length]), name)
  }
}

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

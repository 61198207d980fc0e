import NIOCore
import Wire

/// A place in a JSON document (RFC 6901), parsed once from the configuration.
public struct JSONPointer: Hashable, Sendable {
  /// One step: the name of a member, or the index of an element if the name is a number.
  struct Segment: Hashable, Sendable {
    let name: [UInt8]
    /// The index of an element; `nil` unless the name consists of digits without a leading zero.
    let index: Int?

    /// Whether the name is `*`, which may stand for all elements of an array.
    var isStar: Bool { name == [UInt8(ascii: "*")] }
  }

  let segments: [Segment]

  /// Parses a pointer; `nil` if the text is not empty and does not begin with `/`, or if it contains a `~` that is not
  /// followed by 0 or 1.
  public init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard let first = bytes.first else {
      segments = []
      return
    }
    guard first == UInt8(ascii: "/") else { return nil }
    var segments: [Segment] = []
    for part in bytes.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      guard let name = Self.unescaped(part) else { return nil }
      segments.append(Segment(name: name, index: Self.index(name)))
    }
    self.segments = segments
  }

  /// The pointer to a member of the outermost object.
  init(member name: String) {
    let name = Array(name.utf8)
    segments = [Segment(name: name, index: Self.index(name))]
  }

  private static func unescaped(_ part: ArraySlice<UInt8>) -> [UInt8]? {
    var name: [UInt8] = []
    var rest = part
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "~") else {
        name.append(byte)
        continue
      }
      switch rest.popFirst() {
      case UInt8(ascii: "0"): name.append(UInt8(ascii: "~"))
      case UInt8(ascii: "1"): name.append(UInt8(ascii: "/"))
      default: return nil
      }
    }
    return name
  }

  private static func index(_ name: [UInt8]) -> Int? {
    guard !name.isEmpty, name.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
    guard name.count == 1 || name[0] != 0x30 else { return nil }
    return Int(String(decoding: name, as: UTF8.self))
  }
}

/// The pointers of a selection of JSON members, as a tree that is walked in parallel to the document: those that a
/// fingerprint leaves out, or those that it counts alone.
struct PointerTree: Sendable {
  /// A node of the tree. An optional place is `nil` if no pointer continues.
  typealias Place = Int

  private struct Edge {
    let segment: JSONPointer.Segment
    /// Whether the segment stands for all elements of an array.
    let isWildcard: Bool
    let target: Place
  }

  private struct Node {
    var edges: [Edge] = []
    /// Whether a pointer ends here.
    var isEnd = false
  }

  private var nodes: [Node] = [Node()]
  /// Whether what the pointers name counts alone, and is not left out.
  let selects: Bool

  /// Builds the tree of the parts that are in JSON. A text that is not a pointer is ignored, since the configuration has
  /// refused it before.
  init(_ parts: [PayloadPart], selects: Bool = false) {
    self.selects = selects
    for (pointer, hasWildcards) in parts.compactMap(\.pointer) {
      var place = 0
      for segment in pointer.segments {
        place = follow(segment, isWildcard: hasWildcards && segment.isStar, from: place)
      }
      nodes[place].isEnd = true
    }
  }

  /// The place of the document's root; `nil` if all of it counts.
  var root: Place? { nodes[0].edges.isEmpty ? nil : 0 }

  /// Whether a member counts.
  ///
  /// - Parameters:
  ///   - inner: The member's place.
  ///   - place: The place of its object; `nil` if all of that counts.
  func counts(_ inner: Place?, in place: Place?) -> Bool {
    guard place != nil else { return true }
    guard let inner else { return !selects }
    return selects || !nodes[inner].isEnd
  }

  /// The place from which on a counted value is walked; `nil` if all of it counts.
  func inside(_ place: Place?) -> Place? {
    guard selects, let place, nodes[place].isEnd else { return place }
    return nil
  }

  /// Whether any pointer names elements of an array at this place.
  func namesElements(of place: Place) -> Bool {
    nodes[place].edges.contains { $0.isWildcard || $0.segment.index != nil }
  }

  /// The place of the member whose name satisfies `matches`.
  func member(of place: Place, where matches: ([UInt8]) -> Bool) -> Place? {
    for edge in nodes[place].edges where matches(edge.segment.name) { return edge.target }
    return nil
  }

  /// The place of an array's element.
  func element(_ index: Int, of place: Place) -> Place? {
    for edge in nodes[place].edges where edge.isWildcard || edge.segment.index == index { return edge.target }
    return nil
  }

  private mutating func follow(
    _ segment: JSONPointer.Segment, isWildcard: Bool, from place: Place
  ) -> Place {
    for edge in nodes[place].edges where edge.segment == segment && edge.isWildcard == isWildcard {
      return edge.target
    }
    nodes.append(Node())
    nodes[place].edges.append(Edge(segment: segment, isWildcard: isWildcard, target: nodes.count - 1))
    return nodes.count - 1
  }
}

/// Short keyed digests of the top-level members of one JSON body, by which another body can be compared with it member
/// by member. Nothing of the body can be read from them without the secret, and the same value has another digest in
/// another record.
public struct MemberDigests: Hashable, Sendable {
  /// The digests of a name and of its value.
  struct Member: Hashable {
    let name: UInt32
    let value: UInt32
  }

  /// The maximum number of members, which bounds what a record takes for them: 16 bytes each.
  static let maxMembers = 32
  private static let cutMark: Character = "+"

  /// In the order of the names.
  let members: [Member]
  /// Whether the body has more members.
  let isCut: Bool

  init(members: [Member], isCut: Bool) {
    self.members = members
    self.isCut = isCut
  }

  /// The digests as text for a record: 16 hexadecimal digits for each member.
  var text: String {
    members.reduce(into: isCut ? String(Self.cutMark) : "") { text, member in
      text += member.name.hexText + member.value.hexText
    }
  }

  /// Parses a text; `nil` if it does not have the form that `text` writes.
  init?(text: Substring) {
    isCut = text.first == Self.cutMark
    var digits = (isCut ? text.dropFirst() : text).utf8[...]
    guard digits.count % 16 == 0, digits.count <= 16 * Self.maxMembers else { return nil }
    var members: [Member] = []
    while !digits.isEmpty {
      guard let name = Self.word(&digits), let value = Self.word(&digits) else { return nil }
      members.append(Member(name: name, value: value))
    }
    self.members = members
  }

  private static func word(_ digits: inout Substring.UTF8View) -> UInt32? {
    var word: UInt32 = 0
    for byte in digits.prefix(8) {
      guard let digit = ASCII.hexValue(byte), !(0x41...0x46 ~= byte) else { return nil }
      word = word << 4 | UInt32(digit)
    }
    digits = digits.dropFirst(8)
    return word
  }
}

extension MemberDigests {
  /// Makes the digests of a body; `nil` if it is no JSON object that the recipe compares by its members.
  public init?(
    of body: ByteBuffer, head: MessageHead, recipe: Recipe, id: RecordID, by digests: LogDigests
  ) {
    var members: [Member] = []
    let isObject = Self.read(body, head, recipe, max: Self.maxMembers + 1) { name, value in
      members.append(digests.member(name, of: id, value))
    }
    guard isObject else { return nil }
    self.init(members: Array(members.prefix(Self.maxMembers)), isCut: members.count > Self.maxMembers)
  }

  /// Reads the first members of a body, each with its decoded name. False if it is no such object.
  private static func read(
    _ body: ByteBuffer, _ head: MessageHead, _ recipe: Recipe, max: Int,
    _ visit: ([UInt8], CanonicalJSON.OutermostMember) -> Void
  ) -> Bool {
    body.withUnsafeReadableBytes { bytes in
      recipe.withDocument(in: bytes, head) { document, numbers in
        CanonicalJSON.eachMember(of: document, by: recipe.selection.members, numbers, max: max) { value in
          let name = document.names[value.member]
          visit(value.member.hasEscape ? Array(IteratorSequence(JSONText(name))) : Array(name), value)
        }
      }
    } ?? false
  }

  /// The difference of another payload of the same key, by the recipe of the record; `nil` if that is no JSON object.
  public func difference(
    to body: ByteBuffer, head: MessageHead, recipe: Recipe, id: RecordID, by digests: LogDigests
  ) -> PayloadDifference? {
    var difference = PayloadDifference()
    var known: [UInt32: UInt32] = [:]
    for member in members { known[member.name] = member.value }
    var seen = 0
    // The maximum exceeds the number of members that are kept, so that a few new members do not make the last of those
    // seem missing.
    let max = 2 * Self.maxMembers
    let isObject = Self.read(body, head, recipe, max: max) { name, value in
      seen += 1
      let own = digests.member(name, of: id, value)
      guard let first = known.removeValue(forKey: own.name) else {
        if !isCut { difference.added.append(PayloadDifference.pointer(name)) }
        return
      }
      if first != own.value { difference.changed.append(PayloadDifference.pointer(name)) }
    }
    guard isObject else { return nil }
    difference.missing = seen < max ? known.count : 0
    return difference
  }
}

extension LogDigests {
  /// The digests of one member of a record's payload.
  fileprivate func member(
    _ name: [UInt8], of id: RecordID, _ value: CanonicalJSON.OutermostMember
  ) -> MemberDigests.Member {
    MemberDigests.Member(name: short(name, of: id, nil), value: short(name, of: id, value))
  }

  /// The digest of a name, or of a name with its value.
  private func short(_ name: [UInt8], of id: RecordID, _ value: CanonicalJSON.OutermostMember?) -> UInt32 {
    let digest = keyed { hash in
      hash.byte(UInt8(ascii: value == nil ? "N" : "V"))
      for index in 0..<32 { hash.byte(id.digest[index]) }
      name.withUnsafeBytes { hash.frame($0) }
      value?.writeValue(to: &hash)
    }
    return UInt32(truncatingIfNeeded: digest.words[0] >> 32)
  }
}

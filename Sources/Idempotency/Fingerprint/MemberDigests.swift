import NIOCore
import Wire

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

/// A checked JSON text with an index of its objects, which gives access to each object's members in their sorted order.
///
/// No tree is built: numbers, strings and arrays are read again from the text. The index takes at most a few times the
/// size of the text. A document is valid only as long as the text's memory.
struct JSONDocument {
  /// One member of an object.
  struct Member: BitwiseCopyable {
    /// The offset of the name, after its opening quote.
    var nameStart: UInt32
    /// The name's length in the text, in bytes; the highest bit is set if the name contains escapes.
    var nameLengthAndEscape: UInt32
    var valueStart: UInt32
    /// The number of the first object at or after the start of the value, in the order of the text.
    var firstObject: UInt32

    static let escapeBit: UInt32 = 1 << 31
    var nameLength: UInt32 { nameLengthAndEscape & ~Self.escapeBit }
    var hasEscape: Bool { nameLengthAndEscape & Self.escapeBit != 0 }
  }

  /// One object. Objects are numbered in the order in which they open.
  struct Object {
    var firstMember: UInt32 = 0
    var memberCount: UInt32 = 0
    /// The offset after the closing brace.
    var end: UInt32 = 0
    /// The number of the first object that opens after this one has closed.
    var next: UInt32 = 0
  }

  let text: UnsafeRawBufferPointer
  /// The offset of the outermost value.
  var start = 0
  /// The members of all objects. Those of one object are adjacent and sorted by the bytes of their decoded names.
  var members: [Member] = []
  var objects: [Object] = []
  /// Whether an object has two members with the same name.
  var hasDuplicates = false

  init(text: UnsafeRawBufferPointer) { self.text = text }

  /// Access to the names of the members.
  var names: JSONNames { JSONNames(text: text) }
}

/// The names of members, read from the text when needed.
struct JSONNames {
  typealias Member = JSONDocument.Member

  /// The maximum number of members, and of bytes in all their names, for which comparison sorts the members.
  private static let insertedMembers = 12
  private static let insertedBytes = 512

  let text: UnsafeRawBufferPointer

  /// The text between the quotes of a member's name.
  subscript(member: Member) -> UnsafeRawBufferPointer {
    let start = Int(member.nameStart)
    return UnsafeRawBufferPointer(rebasing: text[start..<start + Int(member.nameLength)])
  }

  /// Whether the decoded name of a member equals `wanted`.
  func isName(_ wanted: [UInt8], of member: Member) -> Bool {
    wanted.withUnsafeBytes { wanted in
      guard member.hasEscape else { return ByteOrder(self[member], wanted) == .same }
      return ByteOrder(JSONText(self[member]), wanted.makeIterator()) == .same
    }
  }

  /// The order of two members by their decoded names.
  func order(_ left: Member, _ right: Member) -> ByteOrder {
    guard left.hasEscape || right.hasEscape else { return ByteOrder(self[left], self[right]) }
    return ByteOrder(JSONText(self[left]), JSONText(self[right]))
  }

  /// Whether the members are sorted and no two have the same name.
  func isStrictlyAscending(_ members: UnsafeMutableBufferPointer<Member>) -> Bool {
    guard members.count > 1 else { return true }
    for index in 1..<members.count where order(members[index - 1], members[index]) != .ascending {
      return false
    }
    return true
  }

  /// Sorts an object's members; false if two have the same name.
  func sort(_ members: UnsafeMutableBufferPointer<Member>) -> Bool {
    // Most clients write the same members in the same order, which is often sorted.
    if isStrictlyAscending(members) { return true }
    let size = members.reduce(0) { $0 + Int($1.nameLength) }
    if members.count <= Self.insertedMembers, size <= Self.insertedBytes { return insert(members) }
    return NameOrder.with(capacity: members.count, size: size) { order in
      read(UnsafeBufferPointer(members), &order)
      order.sort()
      Self.arrange(members, by: order)
      return order.isUnique
    }
  }

  /// Sorts a few members with short names by insertion: comparing them costs less than preparing them for another sort.
  private func insert(_ members: UnsafeMutableBufferPointer<Member>) -> Bool {
    var isUnique = true
    for index in 1..<members.count {
      let member = members[index]
      var place = index
      while place > 0 {
        let order = order(members[place - 1], member)
        if order == .same { isUnique = false }
        guard order == .descending else { break }
        members[place] = members[place - 1]
        place -= 1
      }
      members[place] = member
    }
    return isUnique
  }

  /// Decodes each member's name once.
  private func read(_ members: UnsafeBufferPointer<Member>, _ order: inout NameOrder) {
    for index in 0..<members.count {
      let (name, hasEscape) = (self[members[index]], members[index].hasEscape)
      let isShort = !hasEscape && order.append(UInt32(index), short: name) { _ in true }
      guard !isShort else { continue }
      order.append(UInt32(index)) { memory in
        guard !hasEscape else { return JSONText.decode(name, to: memory) }
        memory.copyMemory(from: name)
        return name.count
      }
    }
  }

  private static func arrange(_ members: UnsafeMutableBufferPointer<Member>, by order: borrowing NameOrder) {
    withUnsafeTemporaryAllocation(of: Member.self, capacity: members.count) { sorted in
      for place in 0..<members.count { sorted[place] = members[Int(order[place].payload)] }
      _ = members.update(fromContentsOf: sorted)
    }
  }
}

/// The bytes of JSON's grammar.
enum JSONByte {
  static let quote = UInt8(ascii: "\"")
  static let backslash = UInt8(ascii: "\\")
  static let comma = UInt8(ascii: ",")
  static let colon = UInt8(ascii: ":")
  static let openBrace = UInt8(ascii: "{")
  static let closeBrace = UInt8(ascii: "}")
  static let openBracket = UInt8(ascii: "[")
  static let closeBracket = UInt8(ascii: "]")

  /// Whether the byte is a space, tab, line feed or carriage return.
  static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }
}

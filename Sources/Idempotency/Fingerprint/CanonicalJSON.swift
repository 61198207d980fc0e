/// Writes a JSON document in one canonical form, which all spellings of the same value share.
///
/// Members are in the order of their decoded names, without white space; strings are decoded and stand between a quote
/// and FF (a byte that no text contains); numbers are copied digit by digit, or written by their exact value (see
/// `JSONNumber`), as the recipe says; a comma follows every member and element. Of an array of which single elements
/// count, each stands behind its index and a colon.
/// No two values share a form.
struct CanonicalJSON {
  private static let endOfString: UInt8 = 0xFF

  /// The equality of numbers: by their digits, or by their exact values.
  enum Numbers: Sendable { case asWritten, byValue }

  private let document: JSONDocument
  private let selection: PointerTree
  private let numbers: Numbers
  /// The position in the text, and the number of the first object at or after it.
  private var position: Int
  private var object = 0

  private init(_ document: JSONDocument, _ selection: PointerTree, _ numbers: Numbers) {
    self.document = document
    self.selection = selection
    self.numbers = numbers
    position = document.start
  }

  /// Writes the members of a document that a selection counts.
  static func write(
    _ document: JSONDocument, by selection: PointerTree, _ numbers: Numbers, to hash: inout FramedHash
  ) {
    var canonical = CanonicalJSON(document, selection, numbers)
    canonical.value(at: selection.root, to: &hash)
  }

  /// One member of the outermost object, whose value can be written by itself.
  struct OutermostMember {
    let member: JSONDocument.Member
    fileprivate let canonical: CanonicalJSON
    fileprivate let place: PointerTree.Place?

    func writeValue(to hash: inout FramedHash) {
      var canonical = canonical
      canonical.position = Int(member.valueStart)
      canonical.object = Int(member.firstObject)
      canonical.value(at: place, to: &hash)
    }
  }

  /// Calls `body` with up to `max` members of the outermost object, in the order of their names, as far as they count.
  ///
  /// - Returns: False if the document is no object.
  static func eachMember(
    of document: JSONDocument, by selection: PointerTree, _ numbers: Numbers, max: Int,
    _ body: (OutermostMember) -> Void
  ) -> Bool {
    guard document.text[document.start] == JSONByte.openBrace else { return false }
    let opened = document.objects[0]
    var count = 0
    for index in Int(opened.firstMember)..<Int(opened.firstMember + opened.memberCount) where count < max {
      let member = document.members[index]
      let inner = selection.root.flatMap { root in
        selection.member(of: root) { document.names.isName($0, of: member) }
      }
      guard selection.counts(inner, in: selection.root) else { continue }
      count += 1
      body(
        OutermostMember(
          member: member, canonical: CanonicalJSON(document, selection, numbers),
          place: selection.inside(inner)))
    }
    return true
  }

  private mutating func value(at place: PointerTree.Place?, to hash: inout FramedHash) {
    switch document.text[position] {
    case JSONByte.openBrace: members(of: document.objects[object], at: place, to: &hash)
    case JSONByte.openBracket: elements(at: place, to: &hash)
    case JSONByte.quote: string(to: &hash)
    default: scalar(to: &hash)
    }
  }

  private mutating func members(
    of opened: JSONDocument.Object, at place: PointerTree.Place?, to hash: inout FramedHash
  ) {
    hash.byte(JSONByte.openBrace)
    for index in Int(opened.firstMember)..<Int(opened.firstMember + opened.memberCount) {
      let member = document.members[index]
      let inner = innerPlace(of: member, in: place)
      guard selection.counts(inner, in: place) else { continue }
      position = Int(member.nameStart) - 1
      string(to: &hash)
      position = Int(member.valueStart)
      object = Int(member.firstObject)
      value(at: selection.inside(inner), to: &hash)
      hash.byte(JSONByte.comma)
    }
    hash.byte(JSONByte.closeBrace)
    position = Int(opened.end)
    object = Int(opened.next)
  }

  @inline(__always)
  private func innerPlace(of member: JSONDocument.Member, in place: PointerTree.Place?) -> PointerTree.Place?
  {
    guard let place else { return nil }
    return selection.member(of: place) { document.names.isName($0, of: member) }
  }

  private mutating func elements(at place: PointerTree.Place?, to hash: inout FramedHash) {
    if selection.selects, let place {
      // An array where the pointers expect an object counts as a whole.
      guard selection.namesElements(of: place) else { return elements(at: nil, to: &hash) }
      return selectedElements(at: place, to: &hash)
    }
    hash.byte(JSONByte.openBracket)
    position += 1
    var index = 0
    while let byte = next(), byte != JSONByte.closeBracket {
      var inner: PointerTree.Place?
      if let place { inner = selection.element(index, of: place) }
      value(at: inner, to: &hash)
      hash.byte(JSONByte.comma)
      index += 1
    }
    position += 1
    hash.byte(JSONByte.closeBracket)
  }

  /// Writes the elements that the selection names, each behind its index.
  private mutating func selectedElements(at place: PointerTree.Place, to hash: inout FramedHash) {
    hash.byte(JSONByte.openBracket)
    position += 1
    var index = 0
    while let byte = next(), byte != JSONByte.closeBracket {
      if let inner = selection.element(index, of: place) {
        for digit in String(index).utf8 { hash.byte(digit) }
        hash.byte(JSONByte.colon)
        value(at: selection.inside(inner), to: &hash)
        hash.byte(JSONByte.comma)
      } else {
        var cursor = JSONDocument.Cursor(position: position, object: object)
        document.skipValue(&cursor)
        (position, object) = (cursor.position, cursor.object)
      }
      index += 1
    }
    position += 1
    hash.byte(JSONByte.closeBracket)
  }

  /// The next byte that is neither white space nor a comma; `nil` at the end.
  @inline(__always)
  private mutating func next() -> UInt8? {
    while position < document.text.count {
      let byte = document.text[position]
      guard JSONByte.isSpace(byte) || byte == JSONByte.comma else { return byte }
      position += 1
    }
    return nil
  }

  @inline(__always)
  private mutating func string(to hash: inout FramedHash) {
    let text = document.text
    let start = position + 1
    var end = start
    var hasEscape = false
    while text[end] != JSONByte.quote {
      guard text[end] == JSONByte.backslash else {
        end += 1
        continue
      }
      hasEscape = true
      end += 2
    }
    hash.byte(JSONByte.quote)
    let content = UnsafeRawBufferPointer(rebasing: text[start..<end])
    if hasEscape {
      var decoded = JSONText(content)
      while let byte = decoded.next() { hash.byte(byte) }
    } else {
      hash.bytes(content)
    }
    hash.byte(Self.endOfString)
    position = end + 1
  }

  /// Writes a number, `true`, `false` or `null`.
  @inline(__always)
  private mutating func scalar(to hash: inout FramedHash) {
    let end = document.endOfScalar(at: position)
    let text = UnsafeRawBufferPointer(rebasing: document.text[position..<end])
    // A single byte is a digit. Of the literals each begins with a letter.
    if numbers == .byValue, text.count > 1, text[0] <= UInt8(ascii: "9") {
      JSONNumber.write(text, to: &hash)
    } else {
      hash.bytes(text)
    }
    position = end
  }
}

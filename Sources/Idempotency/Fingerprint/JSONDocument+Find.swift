/// The result of a search by JSON pointer.
enum JSONFinding {
  /// There is no such member or element, or a value on the way cannot have one.
  case absent
  /// The pointer names a member that its object contains twice.
  case ambiguous
  /// The text between the quotes of a string.
  case string(UnsafeRawBufferPointer)
  /// The digits of a number without fraction and exponent, with its sign.
  case integer(UnsafeRawBufferPointer)
  /// The text of a number with a fraction or an exponent.
  case decimal(UnsafeRawBufferPointer)
  /// A value of another type.
  case other
}

extension JSONDocument {
  /// The value at the pointer.
  func find(_ pointer: JSONPointer) -> JSONFinding {
    switch place(of: pointer) {
    case .absent: .absent
    case .ambiguous: .ambiguous
    case .at(let cursor): value(at: cursor.position)
    }
  }

  /// Whether the value at the pointer is a string of this text, or a number or literal that is written so.
  func scalar(at pointer: JSONPointer, equals wanted: String) -> Bool {
    guard case .at(let cursor) = place(of: pointer) else { return false }
    switch value(at: cursor.position) {
    case .string(let text): return Array(IteratorSequence(JSONText(text))).elementsEqual(wanted.utf8)
    case .integer(let digits), .decimal(let digits): return digits.elementsEqual(wanted.utf8)
    case .absent, .ambiguous: return false
    case .other: return literal(at: cursor.position).elementsEqual(wanted.utf8)
    }
  }

  /// Whether there is a value at the pointer that is not null.
  func hasValue(at pointer: JSONPointer) -> Bool {
    guard case .at(let cursor) = place(of: pointer) else { return false }
    guard case .other = value(at: cursor.position) else { return true }
    return !literal(at: cursor.position).elementsEqual("null".utf8)
  }

  private func literal(at position: Int) -> Slice<UnsafeRawBufferPointer> {
    text[position..<endOfScalar(at: position)]
  }

  /// The array at the pointer: the range between its brackets, and those of its elements; `nil` if there is none.
  ///
  /// - Parameter maxElements: The number of elements that are wanted at most. Of an array with more, one more is there,
  ///   and the range ends with it.
  func array(at pointer: JSONPointer, maxElements: Int) -> (around: Range<Int>, elements: [Range<Int>])? {
    guard case .at(var cursor) = place(of: pointer), text[cursor.position] == JSONByte.openBracket else {
      return nil
    }
    cursor.position += 1
    let begin = cursor.position
    var elements: [Range<Int>] = []
    while true {
      skipSeparators(&cursor)
      guard text[cursor.position] != JSONByte.closeBracket else {
        return (begin..<cursor.position, elements)
      }
      let start = cursor.position
      skipValue(&cursor)
      elements.append(start..<cursor.position)
      if elements.count > maxElements { return (begin..<cursor.position, elements) }
    }
  }

  /// The place of a value.
  enum Place {
    case absent, ambiguous
    case at(Cursor)
  }

  func place(of pointer: JSONPointer) -> Place {
    var cursor = Cursor(position: start, object: 0)
    for segment in pointer.segments {
      switch text[cursor.position] {
      case JSONByte.openBrace:
        let found = members(of: cursor.object).filter { names.isName(segment.name, of: $0) }
        guard found.count < 2 else { return .ambiguous }
        guard let member = found.first else { return .absent }
        cursor = Cursor(position: Int(member.valueStart), object: Int(member.firstObject))
      case JSONByte.openBracket:
        guard let index = segment.index, let element = element(index, of: cursor) else { return .absent }
        cursor = element
      default: return .absent
      }
    }
    return .at(cursor)
  }

  /// Whether the outermost value is an object that fulfils a condition by its members, or an array of such objects
  /// alone, of one at least.
  func outermostObjects(allSatisfy condition: (ArraySlice<Member>) -> Bool) -> Bool {
    switch text[start] {
    case JSONByte.openBrace: return condition(members(of: 0))
    case JSONByte.openBracket:
      var cursor = Cursor(position: start + 1, object: 0)
      var count = 0
      while true {
        skipSeparators(&cursor)
        guard text[cursor.position] != JSONByte.closeBracket else { return count > 0 }
        guard text[cursor.position] == JSONByte.openBrace, condition(members(of: cursor.object)) else {
          return false
        }
        skipValue(&cursor)
        count += 1
      }
    default: return false
    }
  }

  /// A position in the text, and the number of the first object at or after it.
  struct Cursor {
    var position: Int
    var object: Int
  }

  private func members(of object: Int) -> ArraySlice<Member> {
    members[Int(objects[object].firstMember)...].prefix(Int(objects[object].memberCount))
  }

  private func element(_ wanted: Int, of array: Cursor) -> Cursor? {
    var cursor = array
    cursor.position += 1
    var index = 0
    while true {
      skipSeparators(&cursor)
      guard text[cursor.position] != JSONByte.closeBracket else { return nil }
      if index == wanted { return cursor }
      skipValue(&cursor)
      index += 1
    }
  }

  private func skipSeparators(_ cursor: inout Cursor) {
    while JSONByte.isSpace(text[cursor.position]) || text[cursor.position] == JSONByte.comma {
      cursor.position += 1
    }
  }

  /// Skips one value: an object with the help of its index, an array by counting its brackets.
  func skipValue(_ cursor: inout Cursor) {
    var depth = 0
    repeat {
      skipSeparators(&cursor)
      switch text[cursor.position] {
      case JSONByte.openBrace:
        let object = objects[cursor.object]
        cursor = Cursor(position: Int(object.end), object: Int(object.next))
      case JSONByte.openBracket:
        depth += 1
        cursor.position += 1
      case JSONByte.closeBracket:
        depth -= 1
        cursor.position += 1
      case JSONByte.quote: cursor.position = endOfString(at: cursor.position)
      default: cursor.position = endOfScalar(at: cursor.position)
      }
    } while depth > 0
  }

  /// The value that begins here.
  func value(at position: Int) -> JSONFinding {
    switch text[position] {
    case JSONByte.quote:
      return .string(UnsafeRawBufferPointer(rebasing: text[position + 1..<endOfString(at: position) - 1]))
    case UInt8(ascii: "-"), 0x30...0x39:
      let digits = UnsafeRawBufferPointer(rebasing: text[position..<endOfScalar(at: position)])
      return digits.dropFirst().allSatisfy { 0x30...0x39 ~= $0 } ? .integer(digits) : .decimal(digits)
    default: return .other
    }
  }
}

extension JSONDocument {
  /// The offset after the closing quote of the string that begins here.
  func endOfString(at position: Int) -> Int {
    var end = position + 1
    while text[end] != JSONByte.quote { end += text[end] == JSONByte.backslash ? 2 : 1 }
    return end + 1
  }

  /// The offset after the last byte of the number or literal that begins here.
  @inline(__always)
  func endOfScalar(at position: Int) -> Int {
    var end = position
    while end < text.count {
      switch text[end] {
      case JSONByte.comma, JSONByte.closeBrace, JSONByte.closeBracket: return end
      case let byte where JSONByte.isSpace(byte): return end
      default: end += 1
      }
    }
    return end
  }
}

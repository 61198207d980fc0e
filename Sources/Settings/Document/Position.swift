import Yams

/// A position in the file: line and column from 1, columns in Unicode scalars.
struct Position: Hashable, Comparable {
  var line: Int
  var column: Int

  static let start = Position(line: 1, column: 1)

  static func < (left: Position, right: Position) -> Bool {
    (left.line, left.column) < (right.line, right.column)
  }
}

extension Position {
  init(_ mark: Mark?) {
    self.init(line: mark?.line ?? 1, column: mark?.column ?? 1)
  }

  /// The index of this position in a text, with the line ends of YAML; `nil` after the text's end.
  func index(in text: String) -> String.Index? {
    var position = Position.start
    var previous: Unicode.Scalar = " "
    for index in text.unicodeScalars.indices {
      let scalar = text.unicodeScalars[index]
      if position == self { return index }
      position.advance(over: scalar, after: previous)
      previous = scalar
    }
    return nil
  }

  /// The position of the first character that YAML 1.2 (section 5.1) does not allow; `nil` if there is none.
  static func firstUnprintable(in text: String) -> Position? {
    var position = Position.start
    var previous: Unicode.Scalar = " "
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x09, 0x0A, 0x0D, 0x20...0x7E, 0x85, 0xA0...0xD7FF, 0xE000...0xFFFD, 0x10000...0x10FFFF: break
      default: return position
      }
      position.advance(over: scalar, after: previous)
      previous = scalar
    }
    return nil
  }

  private mutating func advance(over scalar: Unicode.Scalar, after previous: Unicode.Scalar) {
    switch scalar {
    case "\n" where previous == "\r":
      break
    case "\n", "\r", "\u{85}", "\u{2028}", "\u{2029}":
      self = Position(line: line + 1, column: 1)
    default:
      column += 1
    }
  }
}

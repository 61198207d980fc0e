import Yams

/// The shared state while a file is read: its name, the environment, and the issues found so far.
final class Reader {
  let file: String
  let environment: [String: String]
  let names: [Position: String]
  /// Whether the file is read for a command that makes no connection by it.
  let isOffline: Bool
  private var refusals: [SettingsIssue] = []
  private var doubts: [SettingsIssue] = []
  private var refusedPaths: Set<String> = []

  init(
    file: String, environment: [String: String], names: [Position: String] = [:], isOffline: Bool = false
  ) {
    self.file = file
    self.environment = environment
    self.names = names
    self.isOffline = isOffline
  }

  /// Reads the text of a file by `body`, which gets the root. The issues are those of the reader that is returned.
  static func read(
    _ text: String, file: String, environment: [String: String], isOffline: Bool = false,
    by body: (Value) -> Void
  ) -> Reader {
    let document: Document
    do throws(Document.SyntaxError) {
      document = try Document(composing: text)
    } catch {
      let reader = Reader(file: file, environment: environment)
      reader.refuse("", at: error.position, error.message)
      return reader
    }
    let reader = Reader(
      file: file, environment: environment, names: document.names, isOffline: isOffline)
    if let root = document.root {
      body(Value(reader: reader, node: root, path: ""))
    } else {
      reader.refuse("", at: .start, "the file is empty: write at least upstreams and routes")
    }
    return reader
  }

  /// Whether a variable that the environment lacks counts as its own name here: only connections need the true value.
  func takesNames(in path: String) -> Bool {
    isOffline
      && (path.contains(".reconcile.")
        || ["admin.", "tracing.", "store.url", "store.username"].contains { path.hasPrefix($0) })
  }

  var errors: [SettingsIssue] { Self.sorted(refusals) }
  var warnings: [SettingsIssue] { Self.sorted(doubts) }

  func refuse(_ path: String, at position: Position, _ message: String) {
    refusedPaths.insert(path)
    refusals.append(issue(path, position, message))
  }

  func warn(_ path: String, at position: Position, _ message: String) {
    doubts.append(issue(path, position, message))
  }

  /// Whether this member, or a part of it, has been refused, so that further checks of its value make no sense.
  func hasRefused(_ path: String) -> Bool {
    refusedPaths.contains {
      $0.hasPrefix(path) && ["", ".", "["].contains($0.dropFirst(path.count).prefix(1))
    }
  }

  private func issue(_ path: String, _ position: Position, _ message: String) -> SettingsIssue {
    SettingsIssue(file: file, line: position.line, column: position.column, path: path, message: message)
  }

  private static func sorted(_ issues: [SettingsIssue]) -> [SettingsIssue] {
    issues.enumerated().sorted { left, right in
      let places = (left.element.line, left.element.column, left.offset)
      return places < (right.element.line, right.element.column, right.offset)
    }.map(\.element)
  }
}

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

/// The nodes of one file. Yams reports only the first member that is given twice. So the first letter of its key is
/// replaced by a scalar of the private use area with the same width, and the file is composed again.
struct Document {
  struct SyntaxError: Error {
    var position: Position
    var message: String
  }

  /// The root node; `nil` for a file without content.
  let root: Node?
  /// The names of members whose key begins with a replacement, by the key's position.
  let names: [Position: String]

  init(composing text: String) throws(SyntaxError) {
    // Yams counts a byte order mark as a column, so it is removed.
    var text = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
    var names: [Position: String] = [:]
    while true {
      do {
        root = try Self.compose(text)
        self.names = names
        return
      } catch YamlError.duplicatedKeysInMapping(let duplicates, let context) {
        let position = Position(context.mark)
        guard let name = duplicates.first,
          let replaced = Self.standIn(for: name, at: position, number: names.count, in: text)
        else {
          throw SyntaxError(position: position, message: "a member is given twice; take one of them out")
        }
        text = replaced
        names[position] = name
      } catch {
        throw SyntaxError(error, in: text)
      }
    }
  }

  private static func compose(_ text: String) throws -> Node? {
    let root = try Parser(yaml: text, resolver: .basic, encoding: .utf8).singleRoot()
    // A file with `---` alone yields such a scalar.
    if case .scalar(let scalar) = root, scalar.style == .plain, scalar.string.isEmpty { return nil }
    return root
  }

  /// The text with the key's first letter replaced; `nil` unless the key is spelt as its plain or quoted name.
  private static func standIn(for name: String, at position: Position, number: Int, in text: String)
    -> String?
  {
    // The private use area has 6400 scalars.
    guard number < 6400, let standIn = Unicode.Scalar(0xE000 + UInt32(number)) else { return nil }
    guard var index = position.index(in: text) else { return nil }
    var text = text
    if "\"'".unicodeScalars.contains(text.unicodeScalars[index]) {
      index = text.unicodeScalars.index(after: index)
    }
    guard text.unicodeScalars[index...].starts(with: name.unicodeScalars), !name.isEmpty else { return nil }
    text.unicodeScalars.replaceSubrange(index...index, with: CollectionOfOne(standIn))
    return text
  }
}

extension Document.SyntaxError {
  fileprivate init(_ error: any Error, in text: String) {
    switch error {
    case YamlError.scanner(let context, let problem, let mark, _),
      YamlError.parser(let context, let problem, let mark, _),
      YamlError.composer(let context, let problem, let mark, _):
      position = Position(mark)
      message = "not valid YAML: "
      if let context {
        message += "\(context.text) (line \(context.mark.line), column \(context.mark.column)), "
      }
      message += problem
      if let index = position.index(in: text), Self.followsReference(index, in: text) {
        message += "; a ${NAME} has to be quoted within [ ] and { }"
      }
    case YamlError.reader(let problem, _, _, _):
      position = Position.firstUnprintable(in: text) ?? .start
      message = "not valid YAML: \(problem)"
    default:
      position = .start
      message = "not valid YAML: \(error)"
    }
  }

  private static func followsReference(_ index: String.Index, in text: String) -> Bool {
    let line = text[..<index].split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).last ?? ""
    return line.contains("${") || (line.hasSuffix("$") && text[index...].hasPrefix("{"))
  }
}

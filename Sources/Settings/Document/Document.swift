import Yams

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

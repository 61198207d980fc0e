import Yams

/// One node of the file. Accessors record an error and return `nil` if the node is of another kind.
struct Value {
  let reader: Reader
  let node: Node
  let path: String
  /// The position of the member's name, or of the value itself if it has no name.
  let keyPosition: Position

  init(reader: Reader, node: Node, path: String, keyPosition: Position? = nil) {
    self.reader = reader
    self.node = node
    self.path = path
    self.keyPosition = keyPosition ?? Position(node.mark)
  }

  var position: Position { Position(node.mark) }

  /// Whether the value, or a part of it, has been refused.
  var hasFault: Bool { reader.hasRefused(path) }

  func refuse(_ message: String) { reader.refuse(path, at: position, message) }
  /// Refuses the member's name, in place of its value.
  func refuseName(_ message: String) { reader.refuse(path, at: keyPosition, message) }
  func warn(_ message: String) { reader.warn(path, at: position, message) }

  /// - Parameter wanted: The expected value for the error message, such as "a duration".
  func text(_ wanted: String) -> String? {
    guard case .scalar(let scalar) = node, !isEmpty else {
      refuseKind(wanted)
      return nil
    }
    do throws(Refusal) {
      return try Interpolation.apply(
        to: scalar.string, environment: reader.environment, takesNames: reader.takesNames(in: path))
    } catch {
      refuse(error.message)
      return nil
    }
  }

  func parsed<Parsed>(_ wanted: String, _ parse: (String) throws(Refusal) -> Parsed) -> Parsed? {
    guard let text = text(wanted) else { return nil }
    do throws(Refusal) {
      return try parse(text)
    } catch {
      refuse(missingVariable ?? error.message)
      return nil
    }
  }

  /// The choice that a text names; `nil` if it is refused, since there is no such choice.
  func choice<Choice>(_ wanted: String, _ choose: (String) -> Choice?) -> Choice? {
    parsed(wanted) { text throws(Refusal) in
      guard let choice = choose(text) else { throw Refusal("must be \(wanted)") }
      return choice
    }
  }

  /// The refusal of a variable that the environment lacks, where its name counts in its place; `nil` if there is none.
  var missingVariable: String? {
    guard case .scalar(let scalar) = node, reader.takesNames(in: path) else { return nil }
    do throws(Refusal) {
      _ = try Interpolation.apply(to: scalar.string, environment: reader.environment)
      return nil
    } catch {
      return error.message
    }
  }

  var isList: Bool {
    if case .sequence = node { true } else { false }
  }

  var isMapping: Bool {
    if case .mapping = node { true } else { false }
  }

  func items(_ wanted: String) -> [Value]? {
    guard case .sequence(let sequence) = node else {
      refuseKind(wanted)
      return nil
    }
    return sequence.enumerated().map { Value(reader: reader, node: $1, path: "\(path)[\($0)]") }
  }

  /// The elements of a list; none of any other value, of which nothing is reported.
  var elements: [Value] { isList ? items("a list") ?? [] : [] }

  /// A member of a mapping, without a report if there is none.
  subscript(name: String) -> Value? { entries.first { $0.name == name }?.value }

  /// The results of `parse` for the elements. Elements that are refused are left out, as is one that repeats another.
  func list<Parsed: Hashable>(
    _ wanted: String, of element: String, _ parse: (String) throws(Refusal) -> Parsed
  ) -> [Parsed]? {
    items(wanted).map { Self.distinct($0) { $0.parsed(element, parse) } }
  }

  /// The results of `read` for the elements of a list. An element that is given twice is refused, and returned once.
  static func distinct<Element: Hashable>(_ items: [Value], _ read: (Value) -> Element?) -> [Element] {
    var lines: [Element: Int] = [:]
    return items.compactMap { item in
      guard let element = read(item) else { return nil }
      if let line = lines[element] {
        item.refuse("is given twice, first in line \(line); take one of them out")
        return nil
      }
      lines[element] = item.position.line
      return element
    }
  }

  /// The members of a mapping in their order. A member that is given twice is refused, and returned once.
  func members(_ wanted: String) -> [(name: String, value: Value)]? {
    guard case .mapping(let mapping) = node else {
      refuseKind(wanted)
      return nil
    }
    for key in mapping.keys where key.scalar == nil {
      reader.refuse(path, at: Position(key.mark), "a member's name must be a plain word")
    }
    var lines: [String: Int] = [:]
    return entries.filter { name, value in
      guard let line = lines[name] else {
        lines[name] = value.keyPosition.line
        return true
      }
      value.refuseName("is given twice, first in line \(line); take one of them out")
      return false
    }
  }

  /// The results of `read` for the members of a mapping. A refusal that it throws is one of the member's name.
  func mapped<Element>(
    _ wanted: String, _ read: (String, Value) throws(Refusal) -> Element?
  ) -> [Element]? {
    members(wanted)?.compactMap { name, value in
      do throws(Refusal) { return try read(name, value) } catch {
        value.refuseName(error.message)
        return nil
      }
    }
  }

  /// The names of a mapping's members, of which nothing is reported.
  var names: [String] {
    var names: [String] = []
    for (name, _) in entries where !names.contains(name) { names.append(name) }
    return names
  }

  /// The members of a mapping as they are written, of which nothing is reported.
  private var entries: [(name: String, value: Value)] {
    guard case .mapping(let mapping) = node else { return [] }
    return mapping.compactMap { key, node in
      guard let scalar = key.scalar else { return nil }
      let position = Position(key.mark)
      let name = reader.names[position] ?? scalar.string
      let value = Value(
        reader: reader, node: node, path: path.isEmpty ? name : "\(path).\(name)", keyPosition: position)
      return (name, value)
    }
  }

  /// Calls `read` to declare and read the members of a mapping, then refuses all other members.
  func section(_ read: (Section) -> Void) {
    guard let members = members("a mapping of members") else { return }
    let section = Section(value: self, members: members)
    read(section)
    section.refuseUndeclared()
  }

  /// Whether the value is the word `null`, written without quotes.
  var isNull: Bool { isEmpty && node.scalar?.string == "null" }

  /// Whether the value is written without quotes and is empty or a null.
  private var isEmpty: Bool {
    guard case .scalar(let scalar) = node, scalar.style == .plain else { return false }
    return ["", "~", "null"].contains(scalar.string)
  }

  private func refuseKind(_ wanted: String) {
    let found =
      switch node {
      case .mapping: "a mapping"
      case .sequence: "a list"
      default: "a single value"
      }
    if isEmpty {
      refuse("has no value: write \(wanted), or take the member out")
    } else {
      refuse("must be \(wanted), not \(found)")
    }
  }
}

enum Suggestion {
  /// The nearest word; `nil` unless at most a third of its letters differ, and three at most. One may always differ.
  static func nearest(to word: String, in words: [String]) -> String? {
    let wanted = plain(word)
    let near = words.map { (word: $0, distance: distance(wanted, plain($0))) }
      .filter { $0.distance <= min(3, max(1, $0.word.count / 3)) }
    return near.min { $0.distance < $1.distance }?.word
  }

  /// The letters of a word, without its letter case and separators: `maxWaiters` and `max-waiters` equal `max_waiters`.
  private static func plain(_ word: String) -> [Character] {
    word.lowercased().filter { $0 != "_" && $0 != "-" && $0 != "." }.map(\.self)
  }

  /// The minimum number of insertions, deletions, changes and swaps of neighbours that turn one word into the other.
  private static func distance(_ left: [Character], _ right: [Character]) -> Int {
    // The names of all settings are much shorter, and the table is quadratic.
    guard !left.isEmpty, !right.isEmpty, left.count <= 64 else { return max(left.count, right.count) }
    var rows = [Array(0...right.count)]
    for (i, letter) in left.enumerated() {
      var row = [i + 1]
      for (j, other) in right.enumerated() {
        var best = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (letter == other ? 0 : 1))
        if i > 0, j > 0, letter == right[j - 1], left[i - 1] == other {
          best = min(best, rows[i - 1][j - 1] + 1)
        }
        row.append(best)
      }
      rows.append(row)
    }
    return rows[left.count][right.count]
  }
}

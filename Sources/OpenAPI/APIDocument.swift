import Yams

/// An OpenAPI document in JSON or YAML. Members keep their order and scalars their spelling; layout and comments go.
public struct APIDocument {
  /// A text that is no OpenAPI document of a version that is read, or that already uses a name for something else.
  public struct Fault: Error, Equatable, CustomStringConvertible {
    /// The reason and the remedy, with line and column where they are known.
    public let description: String
  }

  enum Notation { case json, yaml }

  let notation: Notation
  var root: Node

  /// Reads a document. A text that begins with a brace is JSON.
  public init(_ text: String) throws(Fault) {
    notation = text.first { !$0.isWhitespace && $0 != "\u{FEFF}" } == "{" ? .json : .yaml
    guard let root = try Self.compose(notation == .json ? JSONText.joiningSurrogates(text) : text) else {
      throw Fault(description: "the document is empty")
    }
    self.root = root
    try requireVersion()
  }

  private static func compose(_ text: String) throws(Fault) -> Node? {
    do {
      // Every scalar is a text here: nothing is read as a number, and so nothing is written as another one.
      return try Parser(yaml: text, resolver: .basic, encoding: .utf8).singleRoot()
    } catch YamlError.scanner(_, let problem, let mark, _), YamlError.parser(_, let problem, let mark, _),
      YamlError.composer(_, let problem, let mark, _)
    {
      throw Fault(description: "line \(mark.line), column \(mark.column): neither JSON nor YAML: \(problem)")
    } catch {
      throw Fault(description: "neither JSON nor YAML: \(error)")
    }
  }

  private func requireVersion() throws(Fault) {
    let version = root.member("openapi")?.scalar?.string ?? root.member("swagger")?.scalar?.string
    guard let version, root.member("openapi") != nil, ["3.0", "3.1"].contains(where: version.isVersion) else {
      let found = version.map { "version \($0)" } ?? "no version in its member openapi"
      throw Fault(
        description: "OpenAPI 3.0 and 3.1 are read, and the document has \(found): convert it first")
    }
  }

  /// The document's text in its notation, with a line end at its end.
  public func text() throws(Fault) -> String {
    switch notation {
    case .json: return JSONText.text(root) + "\n"
    case .yaml:
      do {
        return try serialize(node: root, indent: 2, width: -1, allowUnicode: true)
      } catch {
        throw Fault(description: "the document cannot be written: \(error)")
      }
    }
  }
}

extension String {
  fileprivate func isVersion(_ series: String) -> Bool { self == series || hasPrefix(series + ".") }
}

extension Node {
  /// The value of a mapping's member; `nil` if there is none, and for any other node.
  func member(_ name: String) -> Node? { mapping?.first { $0.key.scalar?.string == name }?.value }

  /// The elements of a list; none of any other node.
  var elements: [Node] { sequence.map(Array.init) ?? [] }

  /// Sets a member, which keeps its place or comes last. A node that is no mapping becomes one.
  mutating func set(_ name: String, to value: Node, isQuoted: Bool = false) {
    var members = mapping ?? Node.Mapping([])
    if let index = members.firstIndex(where: { $0.key.scalar?.string == name }) {
      members[index] = (members[index].key, value)
    } else {
      members = Node.Mapping(members.map { ($0.key, $0.value) } + [(.text(name, isQuoted: isQuoted), value)])
    }
    self = .mapping(members)
  }

  /// A text. One that a reader of YAML would take for a number is to be quoted.
  static func text(_ text: String, isQuoted: Bool = false) -> Node {
    .scalar(.init(text, .implicit, isQuoted ? .singleQuoted : .any))
  }

  static func literal(_ text: String) -> Node { .scalar(.init(text, .implicit, .plain)) }

  static func members(_ members: [(name: String, value: Node)]) -> Node {
    .mapping(.init(members.map { (.text($0.name), $0.value) }))
  }

  static func reference(_ kind: Components.Kind, _ name: String) -> Node {
    .members([("$ref", .text("#/components/\(kind.rawValue)/\(name)", isQuoted: true))])
  }
}

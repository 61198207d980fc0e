import Wire
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

/// The host and the base path of an API, by the URL of a server in its document.
public struct ServerAddress: Equatable, Sendable {
  /// The host without its port; `nil` if the URL has none, so that all hosts are meant.
  public let host: String?
  /// The path that stands before those of the document, without a slash at its end.
  public let base: String

  /// Reads a URL, or a path.
  public init(_ url: String) {
    var rest = Substring(url)
    if let separator = url.firstRange(of: "://") {
      let authority = url[separator.upperBound...].prefix { !"/?#".contains($0) }
      rest = url[authority.endIndex...]
      let name =
        authority.hasPrefix("[") ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" }
      host = name.isEmpty ? nil : String(name)
    } else {
      host = nil
    }
    var path = rest.prefix { !"?#".contains($0) }
    while path.last == "/" { path.removeLast() }
    base = path.isEmpty || path.hasPrefix("/") ? String(path) : "/" + path
  }

  /// The first server that an operation, its path or the document names, with its variables' defaults; `nil` for none.
  init?(first servers: [Node?]) {
    guard let server = servers.compactMap({ $0?.elements.first }).first,
      var url = server.member("url")?.scalar?.string
    else { return nil }
    for (name, variable) in server.member("variables")?.mapping.map(Array.init) ?? [] {
      guard let name = name.scalar?.string, let value = variable.member("default")?.scalar?.string else {
        continue
      }
      url = url.replacing("{\(name)}", with: value)
    }
    self.init(url)
  }
}

/// JSON as a notation of nodes, two spaces for each level.
enum JSONText {
  /// A node's text. A plain scalar that is a number or a literal of JSON stays one, and any other is a string.
  static func text(_ node: Node, indent: String = "") -> String {
    let inner = indent + "  "
    switch node {
    case .mapping(let mapping):
      guard !mapping.isEmpty else { return "{}" }
      let members = mapping.map { key, value in
        "\(inner)\((key.scalar?.string ?? "").jsonString): \(text(value, indent: inner))"
      }
      return "{\n\(members.joined(separator: ",\n"))\n\(indent)}"
    case .sequence(let sequence):
      guard !sequence.isEmpty else { return "[]" }
      let elements = sequence.map { inner + text($0, indent: inner) }
      return "[\n\(elements.joined(separator: ",\n"))\n\(indent)]"
    case .scalar(let scalar):
      return scalar.style == .plain && isLiteral(scalar.string) ? scalar.string : scalar.string.jsonString
    case .alias:
      // Yams resolves every alias before it returns a node.
      return "null"
    }
  }

  /// Whether a text is a number or a literal (RFC 8259, sections 3 and 6).
  static func isLiteral(_ text: String) -> Bool {
    if ["true", "false", "null"].contains(text) { return true }
    return text.wholeMatch(of: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/) != nil
  }

  /// JSON without escaped pairs of surrogates, which YAML does not know. All other escapes of JSON are YAML's, too.
  static func joiningSurrogates(_ text: String) -> String {
    guard text.contains("\\u") else { return text }
    var result = ""
    var rest = Substring(text)
    while let slash = rest.firstIndex(of: "\\") {
      result += rest[..<slash]
      rest = rest[slash...]
      if let character = pair(rest) {
        result.unicodeScalars.append(character)
        rest = rest.dropFirst(12)
      } else {
        result += rest.prefix(2)
        rest = rest.dropFirst(2)
      }
    }
    return result + rest
  }

  /// The character of an escaped pair at a text's begin; `nil` if there is none.
  private static func pair(_ text: Substring) -> Unicode.Scalar? {
    guard let high = unit(text), 0xD800..<0xDC00 ~= high, let low = unit(text.dropFirst(6)),
      0xDC00..<0xE000 ~= low
    else { return nil }
    return Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
  }

  private static func unit(_ text: Substring) -> UInt32? {
    guard text.hasPrefix("\\u") else { return nil }
    let digits = text.dropFirst(2).prefix(4)
    return digits.count == 4 && digits.allSatisfy(\.isHexDigit) ? UInt32(digits, radix: 16) : nil
  }
}

import Wire
import Yams

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

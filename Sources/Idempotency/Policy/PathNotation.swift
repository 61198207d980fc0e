/// The notations of paths in web frameworks: `/orders/:id`, `/orders/<int:id>`, `/orders/[id]`, `/orders/{id:\\d+}`,
/// `/orders/(.*)`, `/orders/$`.
enum PathNotation {
  /// The path in Semel's notation if any of its segments is in another notation, else `nil`.
  static func translated(_ text: String) -> String? {
    var text = text[...]
    let isAnchored = text.first == "^"
    if isAnchored { text.removeFirst() }
    guard text.first == "/" else { return nil }
    // The rest of the path in TanStack Router and Remix; in a regular expression the end, if a sign begins it.
    if !isAnchored, text.hasSuffix("/$") { text = text.dropLast() + "(.*)" }
    let isEnded = text.last == "$"
    if isEnded { text.removeLast() }
    let segments = split(text.dropFirst())
    var isForeign = isAnchored || isEnded
    let written = segments.enumerated().map { index, segment in
      guard let parameter = parameter(segment) else { return String(segment) }
      isForeign = true
      return parameter.isRest && index == segments.count - 1 ? "**" : "{\(parameter.name)}"
    }
    return isForeign ? "/" + written.joined(separator: "/") : nil
  }

  /// Splits a text at the slashes outside brackets.
  private static func split(_ text: Substring) -> [Substring] {
    var (segments, start, depth) = ([Substring](), text.startIndex, 0)
    for index in text.indices {
      switch text[index] {
      case "{", "(", "[", "<": depth += 1
      case "}", ")", "]", ">": depth -= 1
      case "/" where depth <= 0:
        segments.append(text[start..<index])
        start = text.index(after: index)
      default: break
      }
    }
    return segments + [text[start...]]
  }

  /// The placeholder for a segment in another notation; `nil` for a segment in Semel's own.
  private static func parameter(_ segment: Substring) -> (name: String, isRest: Bool)? {
    if segment.hasPrefix(":") {
      return (name(in: segment), segment.hasSuffix("*") || segment.hasSuffix("+"))
    }
    if segment.contains("<") || segment.contains(">") {
      let inner = segment.split(separator: "<").last.map { $0.prefix { $0 != ">" } } ?? segment
      let parts = inner.split(separator: ":")
      return (name(in: parts.last ?? inner), parts.count > 1 && parts.first == "path")
    }
    if segment.hasPrefix("["), segment.hasSuffix("]") {
      return (name(in: segment), segment.contains("..."))
    }
    if segment.hasPrefix("{"), segment.hasSuffix("}") {
      let inner = segment.dropFirst().dropLast()
      guard inner.contains(where: { ":?*+{".contains($0) }) || inner.hasSuffix("...") else { return nil }
      let isRepeated = "*+".contains(inner.last ?? " ") && inner.dropLast().allSatisfy(isWord)
      let isRest = [":path", "...", ":.*", ":.+"].contains(where: inner.hasSuffix)
      return (name(in: inner), isRest || isRepeated || inner.hasPrefix("*"))
    }
    let signs = ["^", "|", "(?", ".*", ".+", "\\d", "\\w", "[0-9", "[a-z", "[A-Z", "[^"]
    guard signs.contains(where: segment.contains) else { return nil }
    return ("id", segment.contains(".*") || segment.contains(".+"))
  }

  /// The first word in a text, or `id` if there is none.
  private static func name(in text: Substring) -> String {
    let word = text.drop { !isWord($0) }.prefix(while: isWord)
    return word.isEmpty ? "id" : String(word)
  }

  private static func isWord(_ character: Character) -> Bool {
    character.isASCII && (character.isLetter || character.isNumber || character == "_")
  }
}

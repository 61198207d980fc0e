/// The text of a key's source or of a caller's part in a file: `KIND:NAME`, or a word. What a namespace remembers is
/// read without these rules: an earlier version may have taken what they refuse.
enum SourceText {
  /// The result of `parse`. A name with white space at an end is refused, since no request would have it.
  static func parse<Source>(
    _ text: String, _ parse: (String) throws(Refusal) -> Source
  ) throws(Refusal) -> Source {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { return try parse(text) }
    var name = parts[1]
    while name.first?.isWhitespace == true { name.removeFirst() }
    while name.last?.isWhitespace == true { name.removeLast() }
    let plain = "\(parts[0]):\(name)"
    let source = try parse(plain)
    if name == parts[1] { return source }
    throw Refusal("must have no space around what follows the colon; write \(plain)")
  }

  /// - Parameters:
  ///   - allowed: The forms, with the kinds that need a name as `KIND:`.
  ///   - words: The words that stand alone.
  static func refusal(of text: String, allowed: String, words: [String]) -> Refusal {
    let isKind = allowed.split(separator: " ").contains { $0.hasPrefix(text + ":") }
    let near =
      Suggestion.nearest(to: text, in: words) ?? (Token.isToken(text) && !isKind ? "header:\(text)" : nil)
    return Refusal("must be \(allowed)" + (near.map { "; did you mean \($0)?" } ?? ""))
  }
}

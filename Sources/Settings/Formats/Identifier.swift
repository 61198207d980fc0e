import Wire

/// The names of upstreams, routes and the store's namespace. They appear in logs, metrics and keys of a store, and are
/// restricted so that none of these has to escape them.
enum Identifier {
  static func parse(_ text: String) throws(Refusal) -> String {
    let isValid = text.utf8.allSatisfy { ASCII.isLetterOrDigit($0) || "._-".utf8.contains($0) }
    guard isValid, (1...64).contains(text.utf8.count) else {
      throw Refusal("must be a name of 1 to 64 letters, digits, dots, hyphens and underscores")
    }
    return text
  }
}

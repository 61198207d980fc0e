/// Replaces references to the environment in a text: `${NAME}` and `${NAME:-default}`; `$$` stands for one `$`.
enum Interpolation {
  /// - Parameter takesNames: Whether a variable that the environment lacks counts as its own name.
  static func apply(
    to text: String, environment: [String: String], takesNames: Bool = false
  ) throws(Refusal) -> String {
    var result = ""
    var rest = Substring(text)
    while let dollar = rest.firstIndex(of: "$") {
      result += rest[..<dollar]
      rest = rest[dollar...].dropFirst()
      switch rest.first {
      case "$":
        result += "$"
        rest = rest.dropFirst()
      case "{":
        guard let end = rest.firstIndex(of: "}") else {
          throw Refusal("has a ${ without its }; write ${NAME}, or $${ for the characters themselves")
        }
        result += try value(of: rest[..<end].dropFirst(), environment, takesNames)
        rest = rest[end...].dropFirst()
      default:
        result += "$"
      }
    }
    return result + rest
  }

  private static func value(
    of reference: Substring, _ environment: [String: String], _ takesNames: Bool
  ) throws(Refusal) -> String {
    let name = reference.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
    let rest = reference.dropFirst(name.count)
    guard !name.isEmpty, !(name.first?.isNumber ?? false), rest.isEmpty || rest.hasPrefix(":-") else {
      throw Refusal("has a reference that is neither ${NAME} nor ${NAME:-default}; $${ stands for ${ itself")
    }
    // Its end would be that of the inner one.
    try require(
      !rest.contains("${"),
      "has a reference within a reference; write ${NAME:-default} with a default that is plain text")
    let value = environment[String(name)]
    if rest.isEmpty {
      guard let value = value ?? (takesNames ? String(name) : nil) else {
        throw Refusal("the environment has no \(name): set it, or write ${\(name):-default}")
      }
      return value
    }
    // As in a shell, the default also replaces an empty value.
    guard let value, !value.isEmpty else { return String(rest.dropFirst(2)) }
    return value
  }
}

import Idempotency

/// The settings of the console, the pages on the listener for operators.
public struct ConsoleSettings: Hashable, Sendable {
  public var isOn = true
  /// Whether it may change records where the listener has no token. With one, the token decides.
  public var operate = false
  /// Whether it shows the bodies of recorded responses, each of which is an audit entry.
  public var bodies = false
  /// The path under which a proxy in front serves it, without a slash at its end; empty for none.
  public var basePath = ""

  public init() {}
}

extension ConsoleSettings {
  static let schema = Schema(ConsoleSettings()) {
    Member(
      "operate", \.operate, .flag,
      "without a token, the console may change records; with one, the token decides")
    Member(
      "bodies", \.bodies, .flag,
      "the console shows the bodies of recorded responses, each of which is an audit entry, `view_body`")
    Member(
      "base_path", \.basePath, .consolePath,
      "the path before `/ui/` under which a proxy in front serves the console"
    )
    .standard("none")
  }

  mutating func read(_ member: Value) {
    guard member.isMapping else {
      isOn = member.choice("off, or members such as {operate: true}") { $0 == "off" ? false : nil } ?? true
      return
    }
    member.section { Self.schema.read($0, into: &self) }
  }

  var shown: Shown { isOn ? Self.schema.shown(self) : .text("off") }
}

extension Notation<String> {
  fileprivate static let consolePath = Notation.text(
    "a path such as /semel", show: { $0.isEmpty ? nil : .text($0) }
  ) { text throws(Refusal) in
    let segments = text.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    let isPlain = segments.allSatisfy { segment in
      !segment.isEmpty && segment != "." && segment != ".."
        && segment.utf8.allSatisfy {
          UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0
            || UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || "-._~".utf8.contains($0)
        }
    }
    try require(
      text.hasPrefix("/") && isPlain,
      "must be a path of letters and digits that begins with a slash, and does not end with one: /semel")
    return text
  }
}

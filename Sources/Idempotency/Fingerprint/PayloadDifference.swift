/// The top-level members by which a payload differs from the first one of its key, for operators alone: to a client it
/// would tell what another request contained.
public struct PayloadDifference: Sendable, Equatable {
  /// The pointers of the members whose values differ.
  public var changed: [String] = []
  /// The pointers of the members that the first payload did not have.
  public var added: [String] = []
  /// The number of members of the first payload that are missing. Their names are not kept.
  public var missing = 0

  private static let maxNames = 8
  private static let maxLength = 64

  /// A short text: `/amount +/note -1`.
  public var text: String {
    let names = changed + added.map { "+" + $0 }
    var words = Array(names.prefix(Self.maxNames))
    if names.count > words.count { words.append("…") }
    if missing > 0 { words.append("-\(missing)") }
    return words.isEmpty ? "(no top-level member)" : words.joined(separator: " ")
  }

  /// The JSON pointer of a member, cut to a length that suits a log.
  static func pointer(_ name: [UInt8]) -> String {
    let text = String(decoding: name, as: UTF8.self)
    let cut = text.count > maxLength ? text.prefix(maxLength) + "…" : text[...]
    return "/" + cut.replacing("~", with: "~0").replacing("/", with: "~1")
  }
}

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
  ///
  /// Characters that cannot be seen are written as in JSON (`\u202E`): a terminal or a reader of logs would take some for
  /// a command, or for the end of a line, and others turn the text around.
  static func pointer(_ name: [UInt8]) -> String {
    let scalars = String(decoding: name, as: UTF8.self).unicodeScalars
    var text = "/"
    for scalar in scalars.prefix(maxLength) {
      switch scalar {
      case "~": text += "~0"
      case "/": text += "~1"
      case _ where scalar.isInvisible: text += escape(scalar)
      default: text.unicodeScalars.append(scalar)
      }
    }
    return scalars.dropFirst(maxLength).isEmpty ? text : text + "…"
  }

  private static func escape(_ scalar: Unicode.Scalar) -> String {
    String(scalar).utf16.map { unit in
      let digits = String(unit, radix: 16, uppercase: true)
      return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }.joined()
  }
}

extension Unicode.Scalar {
  /// Whether it is a control character, a separator of lines, or one that only changes how others are shown.
  fileprivate var isInvisible: Bool {
    switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}

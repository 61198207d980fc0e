import Idempotency

/// A part of the configuration as an operator is shown it: JSON with the members, words and units of the file, so that
/// what is shown could be written.
///
/// Each type of settings says by its `shown` what it shows; nothing is found by reflection, so that nothing secret or
/// internal slips in.
enum Shown {
  case text(String)
  case number(Int)
  case flag(Bool)
  case list([Shown])
  /// In the order of `config.yaml`; what is `nil` is not set and left out.
  case members([Member])

  struct Member {
    let name: String
    let value: Shown?

    init(_ name: String, _ value: Shown?) {
      self.name = name
      self.value = value
    }
  }

  static func span(_ span: Milliseconds) -> Shown { .text(TimeSpan.text(span)) }
  static func size(_ bytes: Int) -> Shown { .text(ByteSize.text(bytes)) }
  static func word(_ choice: some RawRepresentable<String>) -> Shown { .text(choice.rawValue) }
  static func texts(_ texts: [String]) -> Shown { .list(texts.map(Shown.text)) }
  /// That there is one, and no more.
  static func secret(_ secret: Secret) -> Shown { .text(secret.description) }
}

extension Shown: ExpressibleByDictionaryLiteral {
  typealias Key = String
  typealias Value = Shown?

  init(dictionaryLiteral members: (String, Shown?)...) {
    self = .members(members.map(Member.init))
  }
}

extension Shown {
  var json: String {
    switch self {
    case .text(let text): Self.quoted(text)
    case .number(let number): "\(number)"
    case .flag(let flag): "\(flag)"
    case .list(let items): "[" + items.map(\.json).joined(separator: ",") + "]"
    case .members(let members):
      "{"
        + members.compactMap { member in member.value.map { Self.quoted(member.name) + ":" + $0.json } }
        .joined(separator: ",") + "}"
    }
  }

  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\\(scalar)"
      case "\u{0}"..."\u{1F}":
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}

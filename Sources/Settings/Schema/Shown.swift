import Idempotency
import Wire

/// A part of the configuration as shown to an operator: JSON with the members, words and units of the file. Each member
/// of a schema states what is shown of it, so that nothing secret is included by accident.
enum Shown {
  case text(String)
  case number(Int)
  case flag(Bool)
  case list([Shown])
  /// Members in the order of the schema. A member that is `nil` is not set and left out.
  case members([Member])

  struct Member {
    let name: String
    let value: Shown?

    init(_ name: String, _ value: Shown?) {
      self.name = name
      self.value = value
    }
  }

  static func span(_ span: Milliseconds) -> Shown { .text(span.text) }
  static func size(_ bytes: Int) -> Shown { .text(ByteSize.text(bytes)) }
  static func word(_ choice: some RawRepresentable<String>) -> Shown { .text(choice.rawValue) }
  static func texts(_ texts: [String]) -> Shown { .list(texts.map(Shown.text)) }
  /// A path or URL, in whose query only names and the placeholder of a request's id are shown: the rest may be secret.
  static func target(_ text: String) -> Shown {
    guard let mark = text.firstIndex(of: "?") else { return .text(text) }
    let query = text[text.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false)
    let pairs = query.map { pair -> String in
      guard let equals = pair.firstIndex(of: "=") else { return redacted(pair) }
      return String(pair[...equals]) + redacted(pair[pair.index(after: equals)...])
    }
    return .text(String(text[...mark]) + pairs.joined(separator: "&"))
  }

  /// The text with a placeholder for each part of it that is not the one of a request's id.
  private static func redacted(_ text: Substring) -> String {
    text.split(separator: ReconcilePolicy.placeholder, omittingEmptySubsequences: false)
      .map { $0.isEmpty ? "" : Secret(String($0)).description }.joined(separator: ReconcilePolicy.placeholder)
  }

  /// A placeholder, which reveals only that the secret is set.
  static func secret(_ secret: Secret) -> Shown { .text(secret.description) }
}

extension Shown {
  /// A default in the reference: as in a file.
  var plain: String {
    switch self {
    case .text(let text): text
    case .list(let items): "[" + items.map(\.plain).joined(separator: ", ") + "]"
    default: json
    }
  }

  var json: String {
    switch self {
    case .text(let text): text.jsonString
    case .number(let number): "\(number)"
    case .flag(let flag): "\(flag)"
    case .list(let items): "[" + items.map(\.json).joined(separator: ",") + "]"
    case .members(let members):
      "{"
        + members.compactMap { member in member.value.map { member.name.jsonString + ":" + $0.json } }
        .joined(separator: ",") + "}"
    }
  }
}

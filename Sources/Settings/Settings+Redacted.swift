import Idempotency

extension Settings {
  /// All that is set, as JSON for an operator; secrets are told to be there, and no more.
  public var redactedJSON: String { RedactedDocument.text(of: self, named: "") }
}

/// Writes a value with all that it is made of, by its members' names: what is added to the settings shows by itself.
private enum RedactedDocument {
  /// Members whose values are secrets, however deep they stand.
  private static let secrets: Set<String> = ["password", "secret"]

  static func text(of value: Any, named name: String) -> String {
    if secrets.contains(name.lowercased()) { return #""(redacted)""# }
    switch value {
    case let number as Int: return "\(number)"
    case let flag as Bool: return "\(flag)"
    case let text as String: return quoted(text)
    case let span as Milliseconds: return quoted(TimeSpan.text(span))
    case let upstream as UpstreamSettings where name == "upstream": return quoted(upstream.name)
    case let issue as SettingsIssue: return quoted("\(issue)")
    case let path as PathPattern: return quoted("\(path)")
    default: return compound(value)
    }
  }

  private static func compound(_ value: Any) -> String {
    let mirror = Mirror(reflecting: value)
    switch mirror.displayStyle {
    case .optional: return mirror.children.first.map { text(of: $0.value, named: "") } ?? "null"
    case .collection, .set:
      return "[" + mirror.children.map { text(of: $0.value, named: "") }.joined(separator: ",") + "]"
    case .dictionary: return dictionary(mirror)
    case .enum:
      guard let only = mirror.children.first else { return quoted(snake("\(value)")) }
      return object([(only.label ?? "", only.value)])
    default: return object(mirror.children.map { ($0.label ?? "", $0.value) })
    }
  }

  private static func object(_ members: [(String, Any)]) -> String {
    let written = members.map { name, value -> String in
      // An optional's name counts for what it holds.
      let mirror = Mirror(reflecting: value)
      let inner: Any? = mirror.displayStyle == .optional ? mirror.children.first?.value : value
      return quoted(snake(name)) + ":" + (inner.map { text(of: $0, named: name) } ?? "null")
    }
    return "{" + written.joined(separator: ",") + "}"
  }

  private static func dictionary(_ mirror: Mirror) -> String {
    let members = mirror.children.compactMap { child -> (String, Any)? in
      let pair = Mirror(reflecting: child.value).children.map(\.value)
      return pair.count == 2 ? ("\(pair[0])", pair[1]) : nil
    }
    return "{"
      + members.sorted { $0.0 < $1.0 }.map { quoted($0.0) + ":" + text(of: $0.1, named: "") }
      .joined(separator: ",") + "}"
  }

  /// `maxInFlight` as `max_in_flight`.
  private static func snake(_ name: String) -> String {
    var snake = ""
    for character in name {
      if character.isUppercase {
        snake += "_" + character.lowercased()
      } else {
        snake.append(character)
      }
    }
    return snake
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

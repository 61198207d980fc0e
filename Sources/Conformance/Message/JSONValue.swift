import Wire

/// A JSON value that keeps the order of members and the digits of numbers, so that it can be written differently.
public indirect enum JSONValue: Equatable, Sendable {
  case null
  case bool(Bool)
  /// The number's text as it stood.
  case number(String)
  case string(String)
  case array([JSONValue])
  case object([Member])

  public struct Member: Equatable, Sendable {
    public var name: String
    public var value: JSONValue

    public init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }
}

extension JSONValue {
  /// The value at a JSON pointer (RFC 6901); `nil` if there is none. The empty pointer is the whole document.
  public func value(at pointer: String) -> JSONValue? {
    var value = self
    for token in JSONValue.tokens(pointer) {
      switch value {
      case .object(let members):
        guard let member = members.first(where: { $0.name == token }) else { return nil }
        value = member.value
      case .array(let elements):
        guard let index = Int(token), elements.indices.contains(index) else { return nil }
        value = elements[index]
      default:
        return nil
      }
    }
    return value
  }

  /// The document with another value at a pointer; `nil` if there is no value to replace.
  public func replacing(at pointer: String, with change: (JSONValue) -> JSONValue?) -> JSONValue? {
    replacing(JSONValue.tokens(pointer)[...], with: change)
  }

  private func replacing(_ tokens: ArraySlice<String>, with change: (JSONValue) -> JSONValue?) -> JSONValue? {
    guard let token = tokens.first else { return change(self) }
    switch self {
    case .object(var members):
      guard let index = members.firstIndex(where: { $0.name == token }),
        let value = members[index].value.replacing(tokens.dropFirst(), with: change)
      else { return nil }
      members[index].value = value
      return .object(members)
    case .array(var elements):
      guard let index = Int(token), elements.indices.contains(index),
        let value = elements[index].replacing(tokens.dropFirst(), with: change)
      else { return nil }
      elements[index] = value
      return .array(elements)
    default:
      return nil
    }
  }

  private static func tokens(_ pointer: String) -> [String] {
    pointer.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
      .map { String($0).replacing("~1", with: "/").replacing("~0", with: "~") }
  }

  /// The text of a string or a number, by which an id is known; `nil` for any other value.
  public var scalarText: String? {
    switch self {
    case .string(let text), .number(let text): text
    default: nil
    }
  }

  /// Every string and number in the document.
  public var scalars: [String] {
    switch self {
    case .null, .bool: []
    case .string(let text), .number(let text): [text]
    case .array(let elements): elements.flatMap(\.scalars)
    case .object(let members): members.flatMap(\.value.scalars)
    }
  }

  /// The order in which the members of objects are written.
  public enum Order: Sendable { case asRead, reversed }

  /// - Parameter space: The text after each colon, comma and opening bracket.
  public func text(_ order: Order = .asRead, space: String = "") -> String {
    switch self {
    case .null: return "null"
    case .bool(let value): return value ? "true" : "false"
    case .number(let text): return text
    case .string(let text): return text.jsonString
    case .array(let elements):
      return "[" + space + elements.map { $0.text(order, space: space) }.joined(separator: "," + space) + "]"
    case .object(let members):
      let ordered = order == .asRead ? members : members.reversed()
      let lines = ordered.map { "\($0.name.jsonString):\(space)\($0.value.text(order, space: space))" }
      return "{" + space + lines.joined(separator: "," + space) + "}"
    }
  }
}

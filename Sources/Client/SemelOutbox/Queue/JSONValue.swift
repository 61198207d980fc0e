import Foundation

/// A JSON document, as far as values are taken from it.
enum JSONValue: Codable, Hashable {
  case null
  case bool(Bool)
  case integer(Int64)
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([JSONValue].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSONValue].self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    }
  }

  init?(document: [UInt8]) {
    guard let value = try? JSONDecoder().decode(JSONValue.self, from: Data(document)) else { return nil }
    self = value
  }

  /// The value at a JSON pointer (RFC 6901).
  func value(at pointer: String) -> JSONValue? {
    if pointer.isEmpty { return self }
    guard pointer.hasPrefix("/") else { return nil }
    var value = self
    for part in pointer.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
      let name = String(part).replacing("~1", with: "/").replacing("~0", with: "~")
      switch value {
      case .object(let members):
        guard let member = members[name] else { return nil }
        value = member
      case .array(let elements):
        guard let index = Int(name), elements.indices.contains(index) else { return nil }
        value = elements[index]
      default: return nil
      }
    }
    return value
  }

  /// The value as it stands in a JSON document. `nil` for an object or an array, which stands for no id.
  var literal: String? {
    switch self {
    case .object, .array, .null: return nil
    default:
      let encoder = JSONEncoder()
      encoder.outputFormatting = .withoutEscapingSlashes
      return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// The value as it stands in a path: a text without its quotation marks.
  var text: String? {
    if case .string(let text) = self { return text }
    return literal
  }
}

import Foundation
import HTTPTypes
import Idempotency

/// A JSON object that an operator sends, with its coding keys as members alone: a mistyped one is not left out.
protocol OperatorDocument: Decodable {
  associatedtype CodingKeys: CodingKey & CaseIterable
}

/// Decodes an operator's document, and refuses it if it has a member that such a document does not have.
@propertyWrapper struct Strict<Document: OperatorDocument>: Decodable {
  var wrappedValue: Document

  init(from decoder: any Decoder) throws {
    let found = try decoder.container(keyedBy: AnyMember.self).allKeys
    if let unknown = found.first(where: { Document.CodingKeys(stringValue: $0.stringValue) == nil }) {
      throw UnknownMember(
        path: (decoder.codingPath + [unknown]).map(\.stringValue).joined(separator: "."),
        known: Document.CodingKeys.allCases.map(\.stringValue))
    }
    wrappedValue = try Document(from: decoder)
  }
}

struct UnknownMember: Error {
  /// The names down to the member, with periods between them.
  let path: String
  /// The names of the members that the object can have.
  let known: [String]
}

private struct AnyMember: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }

  init(stringValue: String) { self.stringValue = stringValue }

  init?(intValue: Int) { nil }
}

/// A number without a fraction. Foundation's own error for another number does not say which member has it.
struct WholeNumber: Decodable {
  let value: Int

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    do {
      value = try container.decode(Int.self)
    } catch {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a whole number")
    }
  }
}

/// The values that the members of operators' documents can have, in words.
enum MemberForm {
  private static let forms = [
    "outcome": #""applied" or "not_applied""#,
    "status": "a whole number, such as 201",
    "attempt": "a whole number, such as 1",
    "amend": "true or false",
    "headers": #"an object of texts, such as {"Content-Type": "application/json"}"#,
    "caller": #"an object of texts, such as {"header:Authorization": "Bearer alice"}"#,
    "key": "a text, or a list with a text for each part",
  ]
  private static let objects: Set = ["record", "payload", "resolution"]

  /// The sentence on the value of the member at a path. What is in `headers` and `caller` has names of choice.
  static func demand(at path: [String]) -> String {
    guard let last = path.last else { return "it is not a JSON object" }
    let place = path.firstIndex { forms[$0] != nil } ?? path.count - 1
    let form = forms[path[place]] ?? (objects.contains(last) ? "an object" : "a text")
    return "\(path[...place].joined(separator: ".")) must be \(form)"
  }
}

/// A member that an object of a JSON text has twice. Foundation's decoder takes one of the two silently.
struct RepeatedMember {
  let path: String

  /// An object or an array that is open.
  private struct Level {
    /// The names of the object's members so far, byte by byte.
    var names: Set<[UInt8]> = []
    /// The member whose value is being read; `nil` in an array.
    var current: String?
  }

  private static let quote = UInt8(ascii: "\"")
  private static let backslash = UInt8(ascii: "\\")

  /// The first one in a text that the decoder takes for JSON; `nil` if there is none.
  init?(in text: [UInt8]) {
    var levels: [Level] = []
    var rest = text[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "{"), UInt8(ascii: "["): levels.append(Level())
      case UInt8(ascii: "}"), UInt8(ascii: "]"): _ = levels.popLast()
      case Self.quote:
        let string = Self.string(&rest)
        // A string before a colon is a name.
        guard Self.isName(before: rest), !levels.isEmpty else { continue }
        let name = Self.decoded(string)
        levels[levels.count - 1].current = name
        guard levels[levels.count - 1].names.insert(Array(name.utf8)).inserted else {
          path = levels.compactMap(\.current).joined(separator: ".")
          return
        }
      default: break
      }
    }
    return nil
  }

  /// Consumes a string and its closing quote, and returns what is between the quotes.
  private static func string(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let start = rest
    while let byte = rest.popFirst(), byte != quote {
      if byte == backslash { _ = rest.popFirst() }
    }
    return start.prefix(max(0, start.count - rest.count - 1))
  }

  /// Whether a colon follows, perhaps after white space.
  private static func isName(before rest: ArraySlice<UInt8>) -> Bool {
    rest.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: ":")
  }

  /// The name that a string stands for: an escape is another spelling of its character.
  private static func decoded(_ string: ArraySlice<UInt8>) -> String {
    let plain = String(decoding: string, as: UTF8.self)
    guard string.contains(backslash) else { return plain }
    return (try? JSONDecoder().decode(String.self, from: Data("\"\(plain)\"".utf8))) ?? plain
  }
}

extension [RoutePolicy] {
  func route(named name: String) throws(AdminError) -> RoutePolicy {
    guard let policy = first(where: { $0.name == name }) else {
      let names = isEmpty ? "none" : map(\.name).joined(separator: ", ")
      throw AdminError(.notFound, "there is no route \(name); there are: \(names)")
    }
    return policy
  }
}

extension RoutePolicy {
  /// The key that an operator's texts make, one for each of its parts.
  func statedKey(_ texts: [String]) throws(AdminError) -> IdempotencyKey {
    let sources = key.from.filter { $0 != .payload }
    try require(!sources.isEmpty, "route \(name) makes its keys of payloads: give the record's id")
    guard sources.contains(where: { $0.parts.count == texts.count }) else {
      let keys = sources.map { Self.text(of: $0.parts) }.joined(separator: " or ")
      let given = "\(texts.count) \(texts.count == 1 ? "is" : "are") given"
      throw AdminError.bad("route \(name) takes a key \(keys), and \(given): give key once for each part")
    }
    try require(!texts.contains(""), "key is empty: give the one that the client sends")
    do throws(Problem) {
      // There may be records of before such keys were refused.
      var policy = key
      policy.placeholders = .accept
      return try policy.key(texts: texts)
    } catch {
      throw AdminError.bad(error.detail)
    }
  }

  private static func text(of parts: [KeySource]) -> String {
    "of \(parts.count) part\(parts.count == 1 ? "" : "s") (\(parts.map(\.text).joined(separator: ", ")))"
  }
}

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

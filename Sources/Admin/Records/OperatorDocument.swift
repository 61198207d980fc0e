/// A JSON object that an operator sends. It has no members but its own: one that is mistyped would be left out
/// silently, and the statement mean more than was meant.
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
        known: Document.CodingKeys.allCases.map(\.stringValue.snakeCase))
    }
    wrappedValue = try Document(from: decoder)
  }
}

/// A member that an operator's document does not have.
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

extension String {
  /// The name as JSON has it: `bodyBase64` as `body_base64`.
  fileprivate var snakeCase: String {
    String(flatMap { $0.isUppercase ? "_\($0.lowercased())" : "\($0)" })
  }
}

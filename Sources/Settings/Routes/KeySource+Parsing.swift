import Idempotency
import Wire

extension KeySource {
  static func parse(_ text: String) throws(Refusal) -> KeySource {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[1].isEmpty else {
      throw Refusal("must be header:NAME, query:NAME, json:/pointer or form:NAME")
    }
    switch parts[0] {
    case "header": return .header(try keyField(parts[1]))
    case "query": return .query(String(parts[1]))
    case "json": return .json(try JSONPointer.parse(parts[1]))
    case "form": return .form(String(parts[1]))
    default: throw Refusal("must be header:NAME, query:NAME, json:/pointer or form:NAME")
    }
  }

  /// A field's name, in lower case. A field that belongs to one message or one connection cannot name an operation.
  private static func keyField(_ text: Substring) throws(Refusal) -> String {
    let name = try Token.fieldName(text)
    guard !unfit.contains(Array(name.utf8).withUnsafeBytes(FieldName.recognise)) else {
      throw Refusal("names a field of the connection, of one message or of Semel, which cannot carry a key")
    }
    return name
  }

  /// The fields that cannot carry a key.
  private static let unfit: FieldNameSet = [
    .hopByHop, .length, .ownRequest, .ownResponse, FieldNameSet(.host, .expect),
  ]
}

extension JSONPointer {
  /// Checks a pointer to a member and returns its text.
  static func parse(_ text: some StringProtocol) throws(Refusal) -> String {
    let text = String(text)
    guard !text.isEmpty, JSONPointer(text) != nil else {
      throw Refusal(
        "must be a JSON pointer that begins with a slash, such as /order/id (~1 for a slash, ~0 for ~)")
    }
    return text
  }
}

import Idempotency

extension KeySource {
  static func parse(_ text: String) throws(Refusal) -> KeySource {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[1].isEmpty else {
      throw Refusal("must be header:NAME, query:NAME, json:/pointer or form:NAME")
    }
    switch parts[0] {
    case "header": return .header(try Token.fieldName(parts[1]))
    case "query": return .query(String(parts[1]))
    case "json": return .json(try JSONPointer.parse(parts[1]))
    case "form": return .form(String(parts[1]))
    default: throw Refusal("must be header:NAME, query:NAME, json:/pointer or form:NAME")
    }
  }
}

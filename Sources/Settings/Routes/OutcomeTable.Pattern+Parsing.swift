import Idempotency

extension OutcomeTable.Pattern {
  /// Parses `500` or `5xx`.
  static func parse(_ text: String) throws(Refusal) -> Self {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    let rest = text.dropFirst(digits.count)
    if digits.count == 3, rest.isEmpty, let status = Int(digits), (100...599).contains(status) {
      return .status(status)
    }
    if digits.count == 1, rest.lowercased() == "xx", let hundred = Int(digits), (1...5).contains(hundred) {
      return .hundred(hundred)
    }
    throw Refusal("must be a status from 100 to 599, or a class from 1xx to 5xx")
  }
}

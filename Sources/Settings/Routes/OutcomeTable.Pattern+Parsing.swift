import Idempotency

extension OutcomeTable.Pattern {
  /// Parses `500` or `5xx`. A status below 200 is no outcome, because the response is still to come (RFC 9110, section
  /// 15.2).
  static func parse(_ text: String) throws(Refusal) -> Self {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    let rest = text.dropFirst(digits.count)
    if digits.count == 3, rest.isEmpty, let status = Int(digits), (200...599).contains(status) {
      return .status(status)
    }
    if digits.count == 1, rest.lowercased() == "xx", let hundred = Int(digits), (2...5).contains(hundred) {
      return .hundred(hundred)
    }
    throw Refusal("must be a status from 200 to 599, or a class from 2xx to 5xx")
  }
}

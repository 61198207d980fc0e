/// A whole number with the unit that follows it.
enum Quantity {
  /// Splits a text such as `30s`. A number that is too large becomes the maximum. A text without a number has the unit
  /// `?`.
  static func split(_ text: String) -> (count: Int64, unit: Substring) {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard !digits.isEmpty else { return (0, "?") }
    return (Int64(digits) ?? .max, text.dropFirst(digits.count))
  }
}

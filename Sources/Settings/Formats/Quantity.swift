/// A whole number and the word behind it.
enum Quantity {
  /// Splits `30s`; a number too large to count is as large as can be. A text without a number has the unit
  /// `?`.
  static func split(_ text: String) -> (count: Int64, unit: Substring) {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard !digits.isEmpty else { return (0, "?") }
    return (Int64(digits) ?? .max, text.dropFirst(digits.count))
  }
}

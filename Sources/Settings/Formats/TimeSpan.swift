import Idempotency

/// Spans of time as the configuration writes them: `250ms`, `30s`, `5m`, `24h`, `30d`.
enum TimeSpan {
  /// From the largest, so that `text` finds the shortest form.
  private static let units: [(name: String, milliseconds: Int64)] = [
    ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
  ]
  /// A hundred years: far from what overflows a clock or a store's expiry.
  static let most: Milliseconds = .seconds(36_500 * 86_400)

  static func parse(_ text: String) throws(Refusal) -> Milliseconds {
    let (count, unit) = Quantity.split(text)
    guard !unit.isEmpty else { throw Refusal("has no unit: write it in ms, s, m, h or d, such as \(count)s") }
    guard let factor = units.first(where: { $0.name == unit })?.milliseconds else {
      throw Refusal("must be a whole number and a unit, which is ms, s, m, h or d")
    }
    let (product, overflow) = count.multipliedReportingOverflow(by: factor)
    guard !overflow, product <= most.count else { throw Refusal("must be at most \(Self.text(most))") }
    return Milliseconds(product)
  }

  /// The span in the largest unit that is whole.
  static func text(_ span: Milliseconds) -> String {
    guard span > 0 else { return "0s" }
    let unit = units.first { span.count % $0.milliseconds == 0 } ?? ("ms", 1)
    return "\(span.count / unit.milliseconds)\(unit.name)"
  }
}

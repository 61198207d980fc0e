import Idempotency

/// Spans of time in the notation of the configuration: `250ms`, `30s`, `5m`, `24h`, `30d`.
enum TimeSpan {
  /// The units from the largest down, so that `text` finds the shortest form.
  private static let units: [(name: String, milliseconds: Int64)] = [
    ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
  ]
  /// The maximum span, a hundred years, which is far from an overflow of a clock or of a store's expiry.
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

  /// The span in the largest unit of which it is a multiple.
  static func text(_ span: Milliseconds) -> String {
    guard span > 0 else { return "0s" }
    let unit = units.first { span.count % $0.milliseconds == 0 } ?? ("ms", 1)
    return "\(span.count / unit.milliseconds)\(unit.name)"
  }
}

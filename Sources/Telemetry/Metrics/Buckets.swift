/// The upper bounds of a histogram's buckets, in the counted unit and as the page writes them.
struct Buckets: Sendable {
  let bounds: [Int]
  let texts: [String]
  /// The number of counted units in one unit of the page, which is the second for durations.
  let scale: Double

  /// The number of cells of a histogram: one per bound, one for the values beyond, and one for the sum.
  var cells: Int { bounds.count + 2 }

  /// Durations, counted in microseconds.
  static let durations = Buckets(
    scale: 1_000_000,
    bounds: [
      25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
      1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
    ])

  /// Times across attempts, counted in milliseconds.
  static let attempts = Buckets(
    scale: 1_000,
    bounds: [
      5, 25, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000,
      14_400_000, 86_400_000,
    ])

  /// Values that libraries record, in steps of four up to 2³⁰. Fractions fall into the first bucket.
  static let values = Buckets(scale: 1, bounds: (0...15).map { 1 << (2 * $0) })

  private init(scale: Double, bounds: [Int]) {
    self.scale = scale
    self.bounds = bounds
    texts = bounds.map { bound in
      let value = Double(bound) / scale
      return value >= 1 ? "\(Int(value * 10))".tenths : "\(value)".withoutExponent
    }
  }

  /// The index of the cell that counts a value. Linear, because most values fall into the first few buckets.
  func index(of value: Int) -> Int {
    bounds.withUnsafeBufferPointer { bounds in
      var index = 0
      while index < bounds.count, value > bounds[index] { index += 1 }
      return index
    }
  }

  func index(of value: Double) -> Int {
    bounds.firstIndex { value <= Double($0) } ?? bounds.count
  }
}

extension String {
  /// The text of a number of tenths: `25` becomes `2.5`, and `600` becomes `60`.
  fileprivate var tenths: String {
    let whole = String(dropLast())
    return last == "0" ? whole : "\(whole).\(last ?? "0")"
  }

  /// The text without an exponent: `2.5e-05` becomes `0.000025`.
  fileprivate var withoutExponent: String {
    guard let mark = firstIndex(of: "e"), let exponent = Int(self[index(after: mark)...]), exponent < 0 else {
      return self
    }
    var digits = self[..<mark].filter { $0 != "." }
    if digits.last == "0", digits.count > 1 { digits.removeLast() }
    return "0." + String(repeating: "0", count: -exponent - 1) + digits
  }
}

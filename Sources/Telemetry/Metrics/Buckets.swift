/// The upper bounds of a histogram's buckets, in the unit in which it is counted, and as the page writes them.
struct Buckets: Sendable {
  let bounds: [Int]
  /// In the page's unit.
  let texts: [String]
  /// How many of the counted unit make one of the page's, which for durations is a second.
  let scale: Double

  /// How many cells a histogram takes: one a bound, one for what lies beyond, and the sum.
  var cells: Int { bounds.count + 2 }

  /// For durations, counted in microseconds: from a replay out of the cache to the longest time-outs.
  static let durations = Buckets(
    scale: 1_000_000,
    bounds: [
      25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
      1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
    ])

  /// For times across attempts, counted in milliseconds: from one fast attempt to a day of retries.
  static let attempts = Buckets(
    scale: 1_000,
    bounds: [
      5, 25, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000,
      14_400_000, 86_400_000,
    ])

  /// For what libraries record, whose unit nobody tells: from 1 to 2³⁰ in steps of four, which gives counts and bytes
  /// their order of magnitude. Fractions stand in the first bucket, and sum and count give their mean.
  static let values = Buckets(scale: 1, bounds: (0...15).map { 1 << (2 * $0) })

  private init(scale: Double, bounds: [Int]) {
    self.scale = scale
    self.bounds = bounds
    texts = bounds.map { bound in
      let value = Double(bound) / scale
      return value >= 1 ? "\(Int(value * 10))".tenths : "\(value)".withoutExponent
    }
  }

  /// Which cell counts this value. Most values stand in the first few.
  func index(of value: Int) -> Int {
    bounds.withUnsafeBufferPointer { bounds in
      var index = 0
      while index < bounds.count, value > bounds[index] { index += 1 }
      return index
    }
  }

  /// The same for one between two of the counted unit.
  func index(of value: Double) -> Int {
    bounds.firstIndex { value <= Double($0) } ?? bounds.count
  }
}

extension String {
  /// `25` as `2.5`, `600` as `60`.
  fileprivate var tenths: String {
    let whole = String(dropLast())
    return last == "0" ? whole : "\(whole).\(last ?? "0")"
  }

  /// `2.5e-05` as `0.000025`.
  fileprivate var withoutExponent: String {
    guard let mark = firstIndex(of: "e"), let exponent = Int(self[index(after: mark)...]), exponent < 0 else {
      return self
    }
    var digits = self[..<mark].filter { $0 != "." }
    if digits.last == "0", digits.count > 1 { digits.removeLast() }
    return "0." + String(repeating: "0", count: -exponent - 1) + digits
  }
}

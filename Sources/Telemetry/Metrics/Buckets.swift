/// The upper bounds of a histogram's buckets, in the unit in which it is counted, and as the page writes them.
struct Buckets: Sendable {
  let bounds: [Int]
  /// In seconds.
  let texts: [String]
  /// What one second is in the counted unit.
  let second: Double

  /// How many cells a histogram takes: one a bound, one for what lies beyond, and the sum.
  var cells: Int { bounds.count + 2 }

  /// For durations, counted in microseconds: from a replay out of the cache to the longest time-outs.
  static let durations = Buckets(
    second: 1_000_000,
    bounds: [
      25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
      1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
    ])

  /// For times across attempts, counted in milliseconds: from one fast attempt to a day of retries.
  static let attempts = Buckets(
    second: 1_000,
    bounds: [
      5, 25, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000,
      14_400_000, 86_400_000,
    ])

  private init(second: Double, bounds: [Int]) {
    self.second = second
    self.bounds = bounds
    texts = bounds.map { bound in
      let seconds = Double(bound) / second
      return seconds >= 1 ? "\(Int(seconds * 10))".tenths : "\(seconds)".withoutExponent
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

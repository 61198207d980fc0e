/// Sizes in the notation of the configuration: `0B`, `64KiB`, `1MiB`, `1GiB`.
enum ByteSize {
  private static let units: [(name: String, bytes: Int64)] = [
    ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1),
  ]

  static func parse(_ text: String) throws(Refusal) -> Int {
    let (count, unit) = Quantity.split(text)
    guard !unit.isEmpty else {
      throw Refusal("has no unit: write it in B, KiB, MiB or GiB, such as \(count)KiB")
    }
    guard let factor = units.first(where: { $0.name == unit })?.bytes else {
      throw Refusal("must be a whole number and a unit, which is B, KiB, MiB or GiB")
    }
    let (product, overflow) = count.multipliedReportingOverflow(by: factor)
    return overflow ? .max : Int(product)
  }

  /// The size in the largest unit of which it is a multiple.
  static func text(_ size: Int) -> String {
    guard size > 0 else { return "0B" }
    let unit = units.first { Int64(size) % $0.bytes == 0 } ?? ("B", 1)
    return "\(Int64(size) / unit.bytes)\(unit.name)"
  }
}

import Idempotency

enum Quantity {
  /// Splits a text such as `30s`. A number that is too large becomes the maximum; without one, the unit is `?`.
  static func split(_ text: String) -> (count: Int64, unit: Substring) {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard !digits.isEmpty else { return (0, "?") }
    return (Int64(digits) ?? .max, text.dropFirst(digits.count))
  }
}

/// Spans of time in the notation of the configuration: `250ms`, `30s`, `5m`, `24h`, `30d`.
enum TimeSpan {
  /// The units from the largest down, so that `Milliseconds.text` finds the shortest form.
  fileprivate static let units: [(name: String, milliseconds: Int64)] = [
    ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
  ]
  /// The maximum span, a hundred years, which is far from an overflow of a clock or of a store's expiry.
  static let max: Milliseconds = .seconds(36_500 * 86_400)

  static func parse(_ text: String) throws(Refusal) -> Milliseconds {
    let (count, unit) = Quantity.split(text)
    guard !unit.isEmpty else {
      let isPossible = count <= max.count / 1000
      throw Refusal(
        "has no unit: write it in ms, s, m, h or d, "
          + (isPossible ? "such as \(count)s" : "and at most \(max.text)"))
    }
    guard let factor = units.first(where: { $0.name == unit })?.milliseconds else {
      throw Refusal("must be a whole number and a unit, which is ms, s, m, h or d")
    }
    let (product, overflow) = count.multipliedReportingOverflow(by: factor)
    guard !overflow, product <= max.count else { throw Refusal("must be at most \(max.text)") }
    return Milliseconds(product)
  }
}

extension Milliseconds {
  /// The span in the largest unit of which it is a multiple, as a configuration writes it.
  public var text: String {
    guard count > 0 else { return "0s" }
    let unit = TimeSpan.units.first { count % $0.milliseconds == 0 } ?? ("ms", 1)
    return "\(count / unit.milliseconds)\(unit.name)"
  }
}

/// Sizes in the notation of the configuration: `0B`, `64KiB`, `1MiB`, `1GiB`.
enum ByteSize {
  private static let units: [(name: String, bytes: Int64)] = [
    ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1),
  ]

  static func parse(_ text: String) throws(Refusal) -> Int {
    let (count, unit) = Quantity.split(text)
    guard !unit.isEmpty else {
      // The maximum of any member, in KiB.
      let isPossible = count <= 1 << 30
      throw Refusal(
        "has no unit: write it in B, KiB, MiB or GiB, such as \(isPossible ? "\(count)KiB" : "64KiB")")
    }
    guard let factor = units.first(where: { $0.name == unit })?.bytes else {
      throw Refusal("must be a whole number and a unit, which is B, KiB, MiB or GiB")
    }
    let (product, overflow) = count.multipliedReportingOverflow(by: factor)
    return overflow ? .max : Int(product)
  }

  static func text(_ size: Int) -> String {
    guard size > 0 else { return "0B" }
    let unit = units.first { Int64(size) % $0.bytes == 0 } ?? ("B", 1)
    return "\(Int64(size) / unit.bytes)\(unit.name)"
  }
}

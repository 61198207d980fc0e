import Synchronization

/// A row of numbers that one event loop writes and any thread reads. With one writer an addition is a plain load and
/// store, a fifth of an atomic one. It lives as long as the process. Atomics, hence `@unchecked Sendable`.
struct MetricCells: @unchecked Sendable {
  private let cells: UnsafeMutablePointer<Atomic<Int>>

  init(count: Int) {
    cells = .allocate(capacity: count)
    for index in 0..<count { (cells + index).initialize(to: Atomic(0)) }
  }

  func add(_ count: Int, at index: Int) {
    cells[index].store(cells[index].load(ordering: .relaxed) &+ count, ordering: .relaxed)
  }

  func observe(_ value: Int, in buckets: Buckets, at start: Int) {
    add(1, at: start + buckets.index(of: value))
    add(value, at: start + buckets.cells - 1)
  }

  subscript(index: Int) -> Int { cells[index].load(ordering: .relaxed) }
}

extension [MetricCells] {
  func sum(at index: Int) -> Int { reduce(0) { $0 + $1[index] } }
}

/// A histogram as read: the sum of the cells of all event loops.
struct HistogramFigures {
  let buckets: Buckets
  private var counts: [Int]
  private var total = 0.0

  init(_ buckets: Buckets) {
    self.buckets = buckets
    counts = Array(repeating: 0, count: buckets.bounds.count + 1)
  }

  init(_ buckets: Buckets, counts: [Int], total: Double) {
    self.buckets = buckets
    self.counts = counts
    self.total = total
  }

  mutating func add(_ row: MetricCells, at start: Int) {
    for index in counts.indices { counts[index] += row[start + index] }
    total += Double(row[start + counts.count])
  }

  var count: Int { counts.reduce(0, +) }
  var perBucket: [Int] { counts }
  /// In the page's unit.
  var sum: Double { total / buckets.scale }

  /// The number of values at or below each bound.
  var cumulative: [Int] {
    var sum = 0
    return counts.dropLast().map { count in
      sum += count
      return sum
    }
  }
}

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

/// The recent history of a few counts: a sample every five seconds for five minutes, and one a minute for an hour.
/// Two to three kilobytes. Pure: the totals come in, one every five seconds.
public struct CountRing: Sendable {
  /// The number of samples of each span.
  public static let length = 60
  private static let fold = 12

  private let width: Int
  private var last: [Int]?
  private var fine: [UInt32]
  private var coarse: [UInt32]
  private var fineEnd = 0
  private var coarseEnd = 0

  /// Creates the history of so many counts, all of whose samples are 0.
  public init(width: Int) {
    self.width = width
    fine = Array(repeating: 0, count: Self.length * width)
    coarse = fine
  }

  /// Takes the totals of all counts. The first ones are the beginning, and no sample.
  public mutating func add(_ totals: [Int]) {
    precondition(totals.count == width, "CountRing: \(totals.count) totals for \(width) counts")
    defer { last = totals }
    guard let last else { return }
    let (fineSlot, coarseSlot) = (fineEnd % Self.length, coarseEnd / Self.fold % Self.length)
    for index in 0..<width {
      let difference = UInt32(clamping: totals[index] - last[index])
      fine[fineSlot * width + index] = difference
      let place = coarseSlot * width + index
      let before = coarseEnd % Self.fold == 0 ? 0 : coarse[place]
      coarse[place] = before.addingReportingOverflow(difference).overflow ? .max : before + difference
    }
    fineEnd += 1
    coarseEnd += 1
  }

  /// The samples of the last five minutes, the oldest first; each has a number for each count.
  public var minutes: [[Int]] { Self.samples(fine, width, from: fineEnd) }

  /// The samples of the last hour, the oldest first. The last one is that of the present minute.
  public var hour: [[Int]] {
    Self.samples(coarse, width, from: (coarseEnd + Self.fold - 1) / Self.fold)
  }

  private static func samples(_ ring: [UInt32], _ width: Int, from start: Int) -> [[Int]] {
    (0..<length).map { offset in
      let slot = (start + offset) % length
      return ring[slot * width..<(slot + 1) * width].map { Int($0) }
    }
  }
}

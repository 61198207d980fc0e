import Synchronization

/// A row of numbers that one event loop writes and any thread reads.
///
/// With only one writer, an addition is a plain load and store, which takes one nanosecond where an atomic addition
/// takes five. The row lives as long as the process. The memory behind its pointer holds atomics, hence `@unchecked
/// Sendable`.
struct MetricCells: @unchecked Sendable {
  private let cells: UnsafeMutablePointer<Atomic<Int>>

  init(count: Int) {
    cells = .allocate(capacity: count)
    for index in 0..<count { (cells + index).initialize(to: Atomic(0)) }
  }

  /// Adds to a number. Called on the writing loop only.
  func add(_ count: Int, at index: Int) {
    cells[index].store(cells[index].load(ordering: .relaxed) &+ count, ordering: .relaxed)
  }

  /// Adds a value to a histogram. Called on the writing loop only.
  func observe(_ value: Int, in buckets: Buckets, at start: Int) {
    add(1, at: start + buckets.index(of: value))
    add(value, at: start + buckets.cells - 1)
  }

  subscript(index: Int) -> Int { cells[index].load(ordering: .relaxed) }
}

extension [MetricCells] {
  /// The sum of a number over the rows of all event loops.
  func sum(at index: Int) -> Int { reduce(0) { $0 + $1[index] } }
}

/// A histogram as read: the sum of the cells of all event loops.
struct HistogramFigures {
  let buckets: Buckets
  /// The number of values per bucket: one element per bound, and one for the values beyond.
  private var counts: [Int]
  /// The sum of all values, in the counted unit.
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
  /// The number of values of each bucket, and of those beyond the last.
  var perBucket: [Int] { counts }
  /// The sum of all values, in the page's unit.
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

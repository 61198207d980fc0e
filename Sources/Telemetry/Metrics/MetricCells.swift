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

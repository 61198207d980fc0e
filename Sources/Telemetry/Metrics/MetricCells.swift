import Synchronization

/// A row of numbers that one event loop writes and any thread reads.
///
/// With one writer a number is raised by a plain load and store, which costs a nanosecond where an atomic addition
/// takes five. The row lives as long as the process.
struct MetricCells: @unchecked Sendable {
  private let cells: UnsafeMutablePointer<Atomic<Int>>

  init(count: Int) {
    cells = .allocate(capacity: count)
    for index in 0..<count { (cells + index).initialize(to: Atomic(0)) }
  }

  /// Called by the one writer.
  func add(_ count: Int, at index: Int) {
    cells[index].store(cells[index].load(ordering: .relaxed) &+ count, ordering: .relaxed)
  }

  /// Called by the one writer.
  func observe(_ value: Int, in buckets: Buckets, at start: Int) {
    add(1, at: start + buckets.index(of: value))
    add(value, at: start + buckets.cells - 1)
  }

  subscript(index: Int) -> Int { cells[index].load(ordering: .relaxed) }
}

/// A histogram as it was read, the cells of all event loops added up.
struct HistogramFigures {
  let buckets: Buckets
  /// One for each bound, and one beyond.
  private var counts: [Int]
  /// Of all values, in the unit in which they are counted.
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
  /// In the page's unit.
  var sum: Double { total / buckets.scale }

  /// How many values lay at or below each bound.
  var cumulative: [Int] {
    var sum = 0
    return counts.dropLast().map { count in
      sum += count
      return sum
    }
  }
}

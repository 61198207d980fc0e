import CoreMetrics
import Synchronization

/// A counter that any thread raises, by whole numbers or by fractions.
final class CounterSeries: CounterHandler, FloatingPointCounterHandler {
  /// The whole numbers. They are separate from the fractions so that an increment is one atomic addition.
  private let whole = Atomic<Int64>(0)
  private let fractions = Atomic<Double>(0)

  var value: Double { Double(whole.load(ordering: .relaxed)) + fractions.load(ordering: .relaxed) }

  /// Raises the counter. A counter only grows: amounts below zero and amounts that are not finite are ignored.
  func increment(by amount: Int64) {
    guard amount > 0 else { return }
    whole.wrappingAdd(amount, ordering: .relaxed)
  }

  func increment(by amount: Double) {
    guard amount > 0, amount.isFinite else { return }
    fractions.add(amount)
  }

  func reset() {
    whole.store(0, ordering: .relaxed)
    fractions.store(0, ordering: .relaxed)
  }
}

extension Atomic where Value == Double {
  func add(_ amount: Double) {
    var current = load(ordering: .relaxed)
    while true {
      let (isDone, found) = weakCompareExchange(
        expected: current, desired: current + amount, ordering: .relaxed)
      if isDone { return }
      current = found
    }
  }
}

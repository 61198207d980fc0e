import CoreMetrics
import Synchronization

/// A counter that any thread raises, by whole numbers and by fractions.
final class CounterSeries: CounterHandler, FloatingPointCounterHandler {
  /// Apart from the fractions, so that it takes one atomic addition.
  private let whole = Atomic<Int64>(0)
  private let fractions = Atomic<Double>(0)

  var value: Double { Double(whole.load(ordering: .relaxed)) + fractions.load(ordering: .relaxed) }

  /// A counter only grows: what would lower it is ignored, as is what is no number.
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

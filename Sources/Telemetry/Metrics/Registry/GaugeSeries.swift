import CoreMetrics
import Synchronization

/// A number that any thread sets: a meter, or a recorder that does not aggregate.
final class GaugeSeries: MeterHandler, RecorderHandler {
  private let current = Atomic<Double>(0)

  var value: Double { current.load(ordering: .relaxed) }

  func set(_ value: Int64) { set(Double(value)) }
  func set(_ value: Double) { current.store(value, ordering: .relaxed) }

  /// Adds to the number. Amounts that are not finite are ignored, because the number would never become finite again.
  func increment(by amount: Double) {
    guard amount.isFinite else { return }
    current.add(amount)
  }

  func decrement(by amount: Double) { increment(by: -amount) }

  func record(_ value: Int64) { set(value) }
  func record(_ value: Double) { set(value) }
}

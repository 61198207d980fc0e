import Idempotency
import ServiceLifecycle
import Synchronization
import Telemetry

/// How many records stand open.
struct RecordCount: Sendable {
  private(set) var counts: [OpenState: Int] = [.inFlight: 0, .unknown: 0]
  private(set) var oldest: [OpenState: Milliseconds] = [.inFlight: 0, .unknown: 0]

  mutating func add(_ record: OpenRecord) {
    let state: OpenState =
      switch record.standing {
      case .unknown: .unknown
      default: .inFlight
      }
    counts[state, default: 0] += 1
    oldest[state] = max(oldest[state] ?? 0, record.age)
  }
}

/// Counts the store's open records now and then, for the metrics page.
///
/// A count walks over the whole store, so it may take at most a hundredth of the time.
public final class RecordCensus: Service {
  /// As often as Prometheus mostly asks.
  private static let pause = Duration.seconds(15)

  private let desk: RecordDesk
  private let last = Mutex<(count: RecordCount, at: Int64)?>(nil)

  public init(desk: RecordDesk) { self.desk = desk }

  public func run() async throws {
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        let startedAt = ContinuousClock.now
        if let count = try? await self.desk.count(), !Task.isCancelled {
          self.last.withLock { $0 = (count, Timestamp.milliseconds()) }
        }
        let pause = max(Self.pause, (ContinuousClock.now - startedAt) * 100)
        try? await Task.sleep(for: pause)
      }
    }
  }

  public var figures: [MetricFigure] {
    guard let (count, at) = last.withLock({ $0 }) else { return [MetricFigure(.recordsCounted, 0)] }
    return OpenState.allCases.flatMap { state in
      [
        MetricFigure(.openRecords, count.counts[state] ?? 0, (OpenState.key, state.text)),
        MetricFigure(
          .oldestRecord, Double((count.oldest[state] ?? 0).count) / 1000, (OpenState.key, state.text)),
      ]
    } + [MetricFigure(.recordsCounted, Double(at) / 1000)]
  }
}

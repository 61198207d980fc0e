import Idempotency
import Platform
import ServiceLifecycle
import Synchronization
import Telemetry

/// The pages of the admin listener for the person on call. Run it as a service: it samples the counts of routes, and
/// walks the open records while somebody looks at them.
public final class Console: Service {
  private static let sampleInterval = Duration.seconds(5)

  let operate: Bool
  let showsBodies: Bool
  /// The beginning of the pages' paths, as browsers see it.
  let root: String
  let recordAdmin: RecordAdmin
  let metrics: Metrics
  let sessions = ConsoleSessions()
  let survey: OpenSurvey
  let plans = BulkPlans()
  let streams = LiveStreams()
  private let histories = Mutex<[String: CountRing]>([:])

  /// - Parameters:
  ///   - operate: Whether pages change records where the listener has no token.
  ///   - bodies: Whether pages show the bodies of recorded responses.
  ///   - basePath: The path before `/ui/` as browsers see it, without a slash at its end.
  public init(operate: Bool, bodies: Bool, basePath: String, recordAdmin: RecordAdmin, metrics: Metrics) {
    (self.operate, showsBodies, root) = (operate, bodies, basePath + "/ui")
    self.recordAdmin = recordAdmin
    self.metrics = metrics
    survey = OpenSurvey(recordAdmin: recordAdmin)
  }

  public func run() async throws {
    await cancelWhenGracefulShutdown {
      await withDiscardingTaskGroup { group in
        group.addTask { await self.survey.run() }
        group.addTask {
          while !Task.isCancelled {
            self.sample()
            try? await Task.sleep(for: Self.sampleInterval)
          }
        }
      }
    }
  }

  private func sample() {
    let figures = metrics.routeFigures
    histories.withLock { histories in
      for route in figures {
        histories[route.name, default: CountRing(width: CountSeries.all.count)].add(route.series)
      }
    }
  }

  func history(of route: String) -> CountRing {
    histories.withLock { $0[route] } ?? CountRing(width: CountSeries.all.count)
  }
}

/// The open streams of *Live*, each of which is one of the listener's connections.
final class LiveStreams: Sendable {
  /// One stream; its place is free once nobody holds this.
  final class Place: Sendable {
    private let streams: LiveStreams

    fileprivate init(_ streams: LiveStreams) { self.streams = streams }

    deinit { streams.count.subtract(1, ordering: .relaxed) }
  }

  /// The maximum number, of the listener's 64 connections.
  private static let max = 16

  private let count = Atomic<Int>(0)

  func enter() -> Place? {
    let place = count.add(1, ordering: .relaxed).newValue
    guard place <= Self.max else {
      count.subtract(1, ordering: .relaxed)
      return nil
    }
    return Place(self)
  }
}

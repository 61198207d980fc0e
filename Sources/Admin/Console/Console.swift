import Idempotency
import Platform
import ServiceLifecycle
import Synchronization
import Telemetry

/// The console: the pages of the admin listener for the person on call, and what they remember.
///
/// Run it as a service: it samples the counts of routes, and walks the open records while somebody looks at them.
public final class Console: Service {
  /// The settings of the console.
  public struct Options: Sendable {
    /// Whether pages change records where the listener has no token.
    public var operate: Bool
    public var bodies: Bool
    /// The path before `/ui/` as browsers see it, without a slash at its end.
    public var basePath: String

    public init(operate: Bool = false, bodies: Bool = false, basePath: String = "") {
      self.operate = operate
      self.bodies = bodies
      self.basePath = basePath
    }
  }

  /// The time between two samples, as `CountRing` has it.
  private static let sampleInterval = Duration.seconds(5)

  let options: Options
  let recordAdmin: RecordAdmin
  let metrics: Metrics
  let sessions = ConsoleSessions()
  let survey: OpenSurvey
  let plans = BulkPlans()
  let streams = LiveStreams()
  private let histories = Mutex<[String: CountRing]>([:])

  public init(options: Options, recordAdmin: RecordAdmin, metrics: Metrics) {
    self.options = options
    self.recordAdmin = recordAdmin
    self.metrics = metrics
    survey = OpenSurvey(recordAdmin: recordAdmin)
  }

  /// The beginning of the pages' paths, as browsers see it.
  var root: String { options.basePath + "/ui" }

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

  /// The history of a route.
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

  /// Takes a place; `nil` if there is none.
  func enter() -> Place? {
    let place = count.add(1, ordering: .relaxed).newValue
    guard place <= Self.max else {
      count.subtract(1, ordering: .relaxed)
      return nil
    }
    return Place(self)
  }
}

import Dispatch
import Logging
import NIOCore
import Platform
import Synchronization

/// Takes finished spans from any thread and sends them to a collector in batches, from a thread of its own. Spans for
/// which there is no room, or that the collector does not take, are dropped and counted.
public final class Tracer: Sendable {
  /// The maximum number of spans that wait.
  private static let capacity = 16_384
  /// The number of spans that are sent at once.
  private static let batch = 512
  private static let interval = DispatchTimeInterval.milliseconds(1000)

  private struct State {
    var spans: [Span] = []
    var isClosed = false
    var sent = 0
    var dropped = 0
  }

  private let state = Mutex(State())
  private let wakeUp = DispatchSemaphore(value: 0)
  private let idle = DispatchSemaphore(value: 0)
  private let traceCount = Atomic<Int>(0)
  private let sample: Int
  private let logger: Logger
  private let send: @Sendable ([UInt8]) -> String?

  /// Creates a tracer and starts its sending thread.
  ///
  /// - Parameters:
  ///   - sample: One of this many traces that begin here is kept. For a client's trace its own flag decides.
  ///   - send: Sends one request body. Returns the reason for which the collector did not take it. May block.
  public init(sample: Int, logger: Logger, send: @escaping @Sendable ([UInt8]) -> String?) {
    self.sample = sample
    self.logger = logger
    self.send = send
    startNeededThread { [self] in run() }
  }

  /// Whether the next trace that begins here is kept. Advances the sampling.
  public func keepsNext() -> Bool {
    sample <= 1 || traceCount.wrappingAdd(1, ordering: .relaxed).oldValue % sample == 0
  }

  /// Takes the spans of an ended request.
  ///
  /// - Parameters:
  ///   - startedAt: The arrival of the request's head, in nanoseconds, by the clock of its parts.
  ///   - now: The present time by the same clock.
  ///   - next: Returns a new span ID for each child.
  public func ended(
    _ entry: borrowing AccessLogEntry, startedAt: UInt64, now: UInt64, next: () -> UInt64
  ) {
    guard let trace = entry.trace, trace.isExported else { return }
    let wallOffset = UInt64(WallClock.nanoseconds()) &- now
    let spans = trace.spans(of: entry, startedAt: startedAt, wallOffset: wallOffset, next: next)
    let isDue = state.withLock { state in
      guard state.spans.count + spans.count <= Self.capacity, !state.isClosed else {
        state.dropped += spans.count
        return false
      }
      let before = state.spans.count
      state.spans += spans
      return before < Self.batch && state.spans.count >= Self.batch
    }
    if isDue { wakeUp.signal() }
  }

  /// The counts of sent and dropped spans, for the metrics page.
  public var figures: [MetricFigure] {
    let (sent, dropped) = state.withLock { ($0.sent, $0.dropped) }
    return [MetricFigure(.spansSent, sent), MetricFigure(.spansDropped, dropped)]
  }

  /// Takes no more spans, and sends those that wait, for at most three seconds.
  public func close() {
    state.withLock { $0.isClosed = true }
    wakeUp.signal()
    _ = idle.wait(timeout: .now() + .seconds(3))
  }

  private func run() {
    var pace = LogPace<Bool>()
    var unlogged = 0
    while true {
      _ = wakeUp.wait(timeout: .now() + Self.interval)
      while let spans = take() {
        let fault = send(SpanDocument.encode(spans))
        state.withLock { state in
          if fault == nil { state.sent += spans.count } else { state.dropped += spans.count }
        }
        guard let fault else { continue }
        unlogged += spans.count
        guard pace.count(true, at: .now()) != nil else { continue }
        logger.warning(
          "the collector of traces takes no spans (tracing.otlp)",
          metadata: ["reason": "\(fault)", "spans": .stringConvertible(unlogged)])
        unlogged = 0
      }
      if state.withLock({ $0.isClosed }) { return _ = idle.signal() }
    }
  }

  private func take() -> [Span]? {
    state.withLock { state in
      guard !state.spans.isEmpty else { return nil }
      let spans = Array(state.spans.prefix(Self.batch))
      state.spans.removeFirst(spans.count)
      return spans
    }
  }
}

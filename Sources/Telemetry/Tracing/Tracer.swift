import Dispatch
import Logging
import NIOCore
import Platform
import Synchronization
import Wire

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

/// The encoder of spans as the body of an OTLP/HTTP request in JSON (`ExportTraceServiceRequest`).
enum SpanDocument {
  static func encode(_ spans: [Span]) -> [UInt8] {
    var text = #"{"resourceSpans":[{"resource":{"attributes":["#
    text += attribute("service.name", .text("semel"))
    text += #"]},"scopeSpans":[{"scope":{"name":"semel"},"spans":["#
    text += spans.map(span).joined(separator: ",")
    text += "]}]}]}"
    return Array(text.utf8)
  }

  private static func span(_ span: Span) -> String {
    var text = #"{"traceId":"\#(span.context.traceText)","spanId":"#
    text += "\"\(span.context.span.hexText)\""
    if let parent = span.parent { text += #","parentSpanId":"\#(parent.hexText)""# }
    text += #","name":\#(span.name.jsonString),"kind":\#(span.kind.rawValue)"#
    // The JSON of Protocol Buffers writes 64-bit numbers as strings.
    text += #","startTimeUnixNano":"\#(span.start)","endTimeUnixNano":"\#(span.end)""#
    text += #","attributes":["# + span.attributes.map(attribute).joined(separator: ",") + "]"
    if let link = span.link {
      let linked = link.span.hexText
      text += #","links":[{"traceId":"\#(link.traceText)","spanId":"\#(linked)"}]"#
    }
    // 2 is an error, and 0 is unset.
    text += #","status":{"code":\#(span.isError ? 2 : 0)}}"#
    return text
  }

  private static func attribute(_ name: String, _ value: Span.Value) -> String {
    switch value {
    case .text(let text): #"{"key":\#(name.jsonString),"value":{"stringValue":\#(text.jsonString)}}"#
    case .number(let number): #"{"key":\#(name.jsonString),"value":{"intValue":"\#(number)"}}"#
    }
  }
}

/// A request's part of a trace, while the request is in progress.
public struct RequestTrace: Sendable {
  /// The trace and the request's own span; the client's span if nothing is exported.
  public var context: TraceContext
  /// The client's span; `nil` if the trace begins here.
  public var parent: UInt64?
  /// Whether spans are exported. If not, the trace appears only in the log.
  public var isExported = false
  /// The span that is the parent of the backend's spans.
  public var forwardSpan: UInt64 = 0
  /// For a replay, the trace in which the request was executed.
  public var origin: TraceContext?
  /// The time of the claim, by the clock of `NIODeadline`, in nanoseconds; `nil` if there was none. If the claim
  /// was repeated after a wait, the first one counts.
  public var claimAt: UInt64?
  /// The time when the request was forwarded, by the same clock; `nil` if it was not.
  public var forwardAt: UInt64?
  /// The time when the storing of the outcome began, by the same clock; `nil` if it did not.
  public var recordAt: UInt64?

  public init(context: TraceContext) { self.context = context }
}

/// One finished operation of a trace.
public struct Span: Sendable {
  public enum Kind: Int, Sendable { case `internal` = 1, server, client }
  public enum Value: Sendable { case text(String), number(Int) }

  var name: String
  var kind: Kind
  /// The trace, and the span's own ID.
  var context: TraceContext
  /// The span that this one is a part of; `nil` for the first of its trace.
  var parent: UInt64?
  /// The start in nanoseconds since 1970.
  var start: UInt64
  var end: UInt64
  var attributes: [(String, Value)] = []
  var isError = false
  var link: TraceContext?
}

extension RequestTrace {
  /// Returns the spans of an ended request: itself and its children claim, forward and record.
  ///
  /// - Parameters:
  ///   - startedAt: The arrival of the request's head, by the clock of the parts.
  ///   - wallOffset: The offset that turns a time of that clock into nanoseconds since 1970.
  ///   - next: Returns a new span ID for each child.
  func spans(
    of entry: borrowing AccessLogEntry, startedAt: UInt64, wallOffset: UInt64, next: () -> UInt64
  ) -> [Span] {
    var spans = [request(entry, startedAt &+ wallOffset)]
    func add(_ name: String, _ kind: Span.Kind, _ span: UInt64, at: UInt64?, microseconds: Int64?) {
      guard let at else { return }
      let start = at &+ wallOffset
      spans.append(
        Span(
          name: name, kind: kind, context: context.speaking(as: span), parent: context.span, start: start,
          end: start &+ UInt64(max(microseconds ?? 0, 0)) * 1000))
    }
    add("claim", .internal, next(), at: claimAt, microseconds: entry.claimMicroseconds)
    add("forward", .client, forwardSpan, at: forwardAt, microseconds: entry.upstreamMicroseconds)
    add("record", .internal, next(), at: recordAt, microseconds: entry.recordMicroseconds)
    return spans
  }

  private func request(_ entry: borrowing AccessLogEntry, _ start: UInt64) -> Span {
    let (method, status) = (entry.method ?? "", entry.status ?? 0)
    var span = Span(
      name: "\(method) \(entry.route ?? "(none)")", kind: .server, context: context, parent: parent,
      start: start, end: start &+ UInt64(entry.totalMicroseconds ?? 0) * 1000)
    span.attributes = [
      ("http.request.method", .text(method)), ("http.response.status_code", .number(status)),
      ("semel.outcome", .text(entry.outcome.text)),
    ]
    if let route = entry.route { span.attributes.append(("semel.route", .text(route))) }
    if let attempt = entry.attempt { span.attributes.append(("semel.attempt", .number(attempt))) }
    if let source = entry.source { span.attributes.append(("semel.source", .text(source.text))) }
    if let refusal = entry.refusal { span.attributes.append(("error.type", .text(refusal.text))) }
    span.isError = status >= 500
    span.link = origin
    return span
  }
}

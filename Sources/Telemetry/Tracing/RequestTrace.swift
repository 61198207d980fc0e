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

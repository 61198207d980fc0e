/// A request's part of a trace, while it is under way.
public struct RequestTrace: Sendable {
  /// The trace, as the request's own span says it; where nothing is exported, as the client said it.
  public var context: TraceContext
  /// The client's span, 0 where the trace begins here.
  public var parent: UInt64 = 0
  /// Whether spans are made of it. Without that it is only told in the log.
  public var isExported = false
  /// The span that the backend's own become children of.
  public var forwardSpan: UInt64 = 0
  /// Of a replay: the trace in which the request first ran.
  public var origin: TraceContext?
  /// When the parts began, by the clock of `NIODeadline`, in nanoseconds; 0 where they did not. Of a claim that is
  /// asked for again after waiting, the first.
  public var claimAt: UInt64 = 0
  public var forwardAt: UInt64 = 0
  public var recordAt: UInt64 = 0

  public init(context: TraceContext) { self.context = context }
}

/// One finished piece of work.
public struct Span: Sendable {
  public enum Kind: Int, Sendable { case `internal` = 1, server, client }
  public enum Value: Sendable { case text(String), number(Int) }

  var name: String
  var kind: Kind
  /// Trace and own span.
  var context: TraceContext
  var parent: UInt64
  /// In nanoseconds since 1970.
  var start: UInt64
  var end: UInt64
  var attributes: [(String, Value)] = []
  var isError = false
  var link: TraceContext?
}

extension RequestTrace {
  /// The span tree of an ended request: request; claim, forward, record.
  ///
  /// - Parameters:
  ///   - startedAt: when the request's head came, by the clock of the parts.
  ///   - wallOffset: what makes time since 1970 of that clock.
  ///   - spans: gives each child a name of its own.
  func spans(
    of record: AccessRecord, startedAt: UInt64, wallOffset: UInt64, next: () -> UInt64
  ) -> [Span] {
    var spans = [request(record, startedAt &+ wallOffset)]
    func add(_ name: String, _ kind: Span.Kind, _ span: UInt64, at: UInt64, microseconds: Int64) {
      guard at > 0 else { return }
      let start = at &+ wallOffset
      spans.append(
        Span(
          name: name, kind: kind, context: context.speaking(as: span), parent: context.span, start: start,
          end: start &+ UInt64(max(microseconds, 0)) * 1000))
    }
    add("claim", .internal, next(), at: claimAt, microseconds: record.claimMicroseconds)
    add("forward", .client, forwardSpan, at: forwardAt, microseconds: record.upstreamMicroseconds)
    add("record", .internal, next(), at: recordAt, microseconds: record.recordMicroseconds)
    return spans
  }

  private func request(_ record: AccessRecord, _ start: UInt64) -> Span {
    var span = Span(
      name: "\(record.method) \(record.route ?? "(none)")", kind: .server, context: context, parent: parent,
      start: start, end: start &+ UInt64(record.totalMicroseconds) * 1000)
    span.attributes = [
      ("http.request.method", .text(record.method)), ("http.response.status_code", .number(record.status)),
      ("semel.outcome", .text(record.outcome.text)),
    ]
    if let route = record.route { span.attributes.append(("semel.route", .text(route))) }
    if record.attempt > 0 { span.attributes.append(("semel.attempt", .number(record.attempt))) }
    if let source = record.source { span.attributes.append(("semel.source", .text(source.text))) }
    if let refusal = record.refusal { span.attributes.append(("error.type", .text(refusal.text))) }
    span.isError = record.status >= 500
    span.link = origin
    return span
  }
}

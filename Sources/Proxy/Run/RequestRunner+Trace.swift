import Idempotency
import NIOCore
import Telemetry
import Wire

/// A request's place in a trace.
extension RequestRunner {
  /// Goes on with the client's trace or begins one; without a collector the client's appears only in the log.
  func beginTrace() {
    let tracer = environment.tracer
    guard tracer != nil || configuration.accessLog.isEnabled else { return }
    let given = head.first(.traceparent).flatMap { field in
      head.withBytes(field.valueRange) { TraceContext($0) }
    }
    guard let tracer, given?.isSampled ?? tracer.keepsNext() else {
      delivery.logEntry.trace = given.map(RequestTrace.init)
      return
    }
    let spans = worker.newOwner()
    // Zero is not a valid span ID (W3C Trace Context), hence `max`.
    var trace = RequestTrace(context: given ?? newTrace())
    trace.parent = given?.span
    trace.context.span = max(spans.high, 1)
    trace.forwardSpan = max(spans.low, 1)
    trace.isExported = true
    delivery.logEntry.trace = trace
  }

  private func newTrace() -> TraceContext {
    let name = worker.newOwner()
    return TraceContext(traceHigh: max(name.high, 1), traceLow: name.low, span: 0, isSampled: true)
  }

  /// Hands the request's spans over.
  func endTrace() {
    guard let tracer = environment.tracer, delivery.logEntry.trace?.isExported == true else { return }
    delivery.logEntry.method = head.methodText
    tracer.ended(
      delivery.logEntry, startedAt: delivery.startedAt.uptimeNanoseconds,
      now: NIODeadline.now().uptimeNanoseconds
    ) { max(worker.newOwner().high, 1) }
  }
}

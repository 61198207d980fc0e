import Idempotency
import NIOCore
import Telemetry
import Wire

/// A request's place in a trace.
extension RequestRunner {
  /// Continues the client's trace or begins one; without a collector the client's appears only in the log.
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
    var trace = RequestTrace(context: given ?? newTrace())
    trace.parent = given?.span
    trace.context.span = worker.newSpanID()
    trace.forwardSpan = worker.newSpanID()
    trace.isExported = true
    delivery.logEntry.trace = trace
  }

  private func newTrace() -> TraceContext {
    TraceContext(traceHigh: worker.newSpanID(), traceLow: worker.newSpanID(), span: 0, isSampled: true)
  }

  /// Hands the request's spans over.
  func endTrace() {
    guard let tracer = environment.tracer, delivery.logEntry.trace?.isExported == true else { return }
    delivery.logEntry.method = head.loggedMethod
    tracer.ended(
      delivery.logEntry, startedAt: delivery.startedAt.uptimeNanoseconds,
      now: NIODeadline.now().uptimeNanoseconds
    ) { worker.newSpanID() }
  }
}

/// The times of a request's parts. A request that Semel repeats has the sum of its attempts, and spans that begin with
/// the first.
extension RequestRunner {
  /// Notes that a claim is sent to the store, and returns the time.
  func noteClaimSent() -> NIODeadline {
    let now = NIODeadline.now()
    if delivery.logEntry.trace?.claimAt == nil { delivery.logEntry.trace?.claimAt = now.uptimeNanoseconds }
    return now
  }

  func noteClaimReply(_ requestedAt: NIODeadline) {
    delivery.logEntry.claimMicroseconds =
      (delivery.logEntry.claimMicroseconds ?? 0) + microseconds(since: requestedAt)
  }

  /// Notes that an attempt is sent to the backend, and returns the time.
  func noteForwarded() -> NIODeadline {
    let now = NIODeadline.now()
    if delivery.logEntry.trace?.forwardAt == nil {
      delivery.logEntry.trace?.forwardAt = now.uptimeNanoseconds
    }
    return now
  }

  /// Notes the backend's time, which ends now, and returns the time.
  func noteBackendTime(since forwardedAt: NIODeadline) -> NIODeadline {
    let now = NIODeadline.now()
    delivery.logEntry.upstreamMicroseconds =
      (delivery.logEntry.upstreamMicroseconds ?? 0) + microseconds(since: forwardedAt, until: now)
    return now
  }

  /// Notes that an outcome is about to be stored.
  func noteRecording(at now: NIODeadline) {
    if delivery.logEntry.trace?.recordAt == nil { delivery.logEntry.trace?.recordAt = now.uptimeNanoseconds }
  }

  func noteRecordTime(since recordedAt: NIODeadline) {
    delivery.logEntry.recordMicroseconds =
      (delivery.logEntry.recordMicroseconds ?? 0) + microseconds(since: recordedAt)
  }
}

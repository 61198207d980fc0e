import Idempotency
import NIOCore
import Telemetry
import Wire

/// The attribution of records and log entries, also of requests that end before they are identified.
extension RequestRunner {
  /// Notes the digests of key and caller, for the access log and for the journal.
  ///
  /// - Parameter attribution: The origin in its claim, if there is one, whose digests need not be made again.
  @inline(never)
  func noteIdentity(of call: KeyedCall, as attribution: Attribution? = nil) {
    if delivery.logEntry.keyDigest == nil {
      delivery.logEntry.keyDigest = attribution?.keyDigest ?? call.key.digestText(by: environment.digests)
    }
    guard delivery.logEntry.callerDigest == nil else { return }
    if let digest = attribution?.callerDigest {
      delivery.logEntry.callerDigest = digest
    } else {
      noteCaller(call.caller)
    }
  }

  func noteCaller(_ caller: Caller) {
    delivery.logEntry.hasSharedDigests = environment.digests.isShared
    delivery.logEntry.callerDigest = caller.digestText(by: environment.digests)
  }

  /// The origin that a record names. Its digests are those of the log entry, if that has them: they are made once.
  ///
  /// There are no digests until the secret of all nodes is known, because nobody could find the record by them.
  @inline(never)
  func attribution(of call: KeyedCall) -> Attribution {
    // A copy of the policy would cost as much as the digests.
    let route = call.route
    guard let digests = worker.digestsOfAllNodes() else {
      return Attribution(route: route.policy.name, node: environment.node)
    }
    // The delivery of a batch has no key of its own.
    let isNoted = delivery.logEntry.hasSharedDigests && route.policy.batch == nil
    let key = isNoted ? delivery.logEntry.keyDigest : nil
    let caller = isNoted ? delivery.logEntry.callerDigest : nil
    return Attribution(
      route: route.policy.name, keyDigest: key ?? digests.text(of: call.key),
      callerDigest: caller ?? digests.text(of: call.caller), node: environment.node)
  }

  /// Notes the route of a request that is refused before it was identified, and, as far as its head holds them, its
  /// record and the digests of its key and its caller.
  @inline(never)
  func noteSubjectOfRefused() {
    guard delivery.recordID == nil, delivery.logEntry.recordID == nil, delivery.logEntry.would == nil,
      let (target, host) = try? configuration.routes.address(
        of: head, operation: delivery.operation, form: delivery.form), target.form != .authority
    else { return }
    if head.method == .options, preflighted(target, host: host) != nil { return }
    if let path = ReservedPath(head, path: target.path) {
      _ = try? reserved(path, target, host: host)
      return
    }
    guard
      let choice = try? configuration.routes.choice(
        for: head, host: host?.name ?? ByteBuffer(), path: target.path, query: target.query,
        operation: delivery.operation, form: delivery.form),
      let route = choice.route
    else { return }
    noteRoute(route)
    guard route.policy.isEnforced, !choice.isUndecided else { return }
    noteIdentityOfRefused(route, target, host, method: choice.method)
  }

  func noteRoute(_ route: Route?) {
    delivery.logEntry.route = route?.policy.name
    delivery.logEntry.routeNumber = route?.number ?? 0
    delivery.logEntry.pathTemplate = route?.policy.match.path?.text
  }

  /// Notes what a protected request's head holds of its identity. The items of a batch have their keys in the body, and
  /// a token that was not verified names no caller.
  private func noteIdentityOfRefused(
    _ route: Route, _ target: RequestTarget, _ host: RequestHost?, method: ByteBuffer
  ) {
    guard configuration.accessLog.isEnabled || environment.journal != nil else { return }
    var key: IdempotencyKey?
    if route.policy.batch == nil,
      case .found(let found)? = try? route.policy.key.keyBeforeBody(head: head, query: target.query)
    {
      key = found
      delivery.logEntry.keyDigest = found.digestText(by: environment.digests)
    }
    guard let peer = identifiedPeer(tokensAt: route.tokenPlaces),
      let caller = try? route.policy.caller?.callerBeforeBody(head: head, peer: peer, query: target.query)
    else { return }
    noteCaller(caller)
    guard let key else { return }
    delivery.recordID = route.recordID(
      caller: caller, host: host, method: method, path: target.path, key: key, under: environment.identityKey)
  }

  /// Notes the earlier request that an inquiry is about. The inquiry is no delivery of it.
  func noteInquiry(_ inquiry: OutcomeInquiry) {
    noteRoute(inquiry.route)
    guard configuration.accessLog.isEnabled else { return }
    delivery.logEntry.recordID = inquiry.id
    delivery.logEntry.keyDigest = inquiry.key.digestText(by: environment.digests)
  }

  /// The maximum number of a batch's records that one log entry names.
  private static var maxNamedRecords: Int { 8 }

  /// Notes the number of a batch's items and their first records.
  @inline(never)
  func noteItems(of batch: BatchCall) {
    guard configuration.accessLog.isEnabled else { return }
    delivery.logEntry.items = batch.places.count
    delivery.logEntry.itemRecords = batch.calls.prefix(Self.maxNamedRecords).map(\.id.text)
      .joined(separator: ",")
  }
}

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

/// The trace in which a recorded response first ran. It is written behind the response's own fields and removed before
/// a replay, so that the stores need not know of it and records without it stay valid.
enum TraceStamp {
  private static let name: StaticString = "Idempotency-Trace: "
  private static let length = name.utf8CodeUnitCount + TraceContext.textLength + 2

  /// Adds the stamp to a response that is kept, if its request is traced. A field of the backend's own that looks like a
  /// stamp is left out, since a replay would take it for one.
  static func put(_ trace: RequestTrace?, on outcome: Outcome) -> Outcome {
    guard case .whole(var response) = outcome else { return outcome }
    while take(from: &response) != nil {}
    guard let trace, trace.isExported else { return .whole(response) }
    var fields = response.fields
    fields.writeLiteral(name)
    fields.writeString(trace.context.text)
    fields.writeLiteral("\r\n")
    return .whole(
      RecordedResponse(
        status: response.status, fields: fields, body: response.body, trailers: response.trailers))
  }

  /// Removes the stamp, and returns a function that parses it; `nil` if there is none. Most replays are not traced, and
  /// need no parsing.
  static func take(from response: inout RecordedResponse) -> (() -> TraceContext?)? {
    var fields = response.fields
    let start = fields.readableBytes - length
    guard start >= 0 else { return nil }
    let isThere = fields.withUnsafeReadableBytes { bytes in
      // The stamp is a whole line: the only one, or behind the end of another.
      (start == 0 || bytes[start - 1] == ASCII.lineFeed)
        && UnsafeRawBufferPointer(rebasing: bytes[start..<start + name.utf8CodeUnitCount]).elementsEqual(
          UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    }
    guard isThere, let own = fields.readSlice(length: start) else { return nil }
    let stamp = fields
    response = RecordedResponse(
      status: response.status, fields: own, body: response.body, trailers: response.trailers)
    return {
      stamp.withUnsafeReadableBytes { bytes in
        TraceContext(
          UnsafeRawBufferPointer(
            rebasing: bytes[name.utf8CodeUnitCount..<name.utf8CodeUnitCount + TraceContext.textLength]))
      }
    }
  }
}

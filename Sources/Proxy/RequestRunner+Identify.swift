import Idempotency
import NIOCore
import Telemetry
import Wire

/// Identify: who asks for what, under which key. Nothing is claimed or sent before all of it is accepted.
extension RequestRunner {
  /// What a request is about.
  enum Subject {
    case passed(RequestTarget, by: Route?, label: AnswerLabel?)
    case keyed(KeyedCall, Fingerprint)
    /// Accepted by its head; its body, of at most so many bytes, has to be read first.
    case incomplete(limit: Int)
    /// Accepted by its head, with a body that has to be read beside the loop.
    case large(LargeRequest)
  }

  /// Where the request goes by its own word: one path and one host, in the form in which they are matched.
  private func addressed() throws(Problem) -> (RequestTarget, ByteBuffer) {
    do throws(WireError) {
      // An http URI has a host (RFC 9110, section 4.2.1); HTTP/1.0 alone may leave it out.
      guard head.minorVersion == 0 || head.first(.host)?.valueRange.isEmpty != true else {
        throw .badHost
      }
      let target = try RequestTarget(head)
      return (target, try RequestHost(of: head, target: target)?.name ?? ByteBuffer())
    } catch {
      throw .unreadable(error)
    }
  }

  @inline(never)
  func identify(body: ByteBuffer?) throws(Problem) -> Subject {
    let (target, host) = try addressed()
    guard target.form != .authority else { throw .notImplemented }
    let route = generation.routes.route(for: head, host: host, target: target)
    delivery.record.route = route?.policy.name
    delivery.record.routeNumber = route?.number ?? 0
    guard let route, route.policy.idempotency != .off else {
      let isKeyed = head.first(.idempotencyKey) != nil
      return .passed(target, by: route, label: isKeyed ? .ignored : nil)
    }
    try refuseUnprotectable(route)
    let finding = try route.policy.key.keyBeforeBody(head: head, query: target.query)
    if case .missing = finding { return try unkeyed(target, by: route) }
    let caller = try caller(of: route)
    let limit = route.policy.maxRequestBody
    guard let body else { return .incomplete(limit: limit) }
    guard body.readableBytes <= limit else { throw .requestTooLarge(limit: limit) }
    let accepted = AcceptedHead(
      head: head, route: route, target: target, host: host, caller: caller, finding: finding,
      identityKey: environment.identityKey)
    guard worker.bodies.mayReadOnLoop(accepted.readBytes(of: body)) else {
      return .large(LargeRequest(accepted, body: body))
    }
    return try subject(by: try accepted.read(body), of: accepted)
  }

  /// Reads a large body beside the loop.
  @inline(never)
  func identify(_ request: LargeRequest) async throws(Problem) -> Subject {
    let reading = await worker.bodies.read(request.bytes, of: delivery.connection) { request.read() }
    return try subject(by: try reading.get(), of: request.accepted)
  }

  private func subject(
    by reading: AcceptedHead.Reading?, of accepted: AcceptedHead
  ) throws(Problem) -> Subject {
    guard let reading else { return try unkeyed(accepted.target, by: accepted.route) }
    delivery.recordID = reading.call.id
    if generation.accessLog.isEnabled {
      delivery.record.keyDigest = reading.key.digestText(by: environment.digests)
    }
    return .keyed(reading.call, reading.fingerprint)
  }

  private func caller(of route: Route) throws(Problem) -> Caller {
    guard let policy = route.policy.caller else {
      preconditionFailure("RequestRunner: a protected route without caller")
    }
    let caller = try policy.caller(head: head, peer: delivery.peer.caller)
    if generation.accessLog.isEnabled {
      delivery.record.callerDigest = caller.digestText(by: environment.digests)
    }
    return caller
  }

  /// A request without a key on a protected route: refused where one is required, else passed through.
  private func unkeyed(_ target: RequestTarget, by route: Route) throws(Problem) -> Subject {
    guard route.policy.idempotency == .optional else { throw .keyMissing(route.policy.key) }
    return .passed(target, by: route, label: nil)
  }

  /// What no record can stand for, and what would let a client hide the key or the caller from the backend.
  private func refuseUnprotectable(_ route: Route) throws(Problem) {
    guard !head.asksForUpgrade else { throw .notImplemented }
    guard !head.isGRPC else { throw .grpcNotProtected }
    guard head.first(.connection) != nil else { return }
    for name in route.policy.identifyingFields where head.connectionNames(name) {
      throw .badRequest(.connectionNamesIdentity)
    }
  }
}

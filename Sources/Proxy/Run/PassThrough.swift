import Idempotency
import NIOCore
import Platform
import Telemetry
import Wire

/// The run of a request without a record: streamed both ways, never stored.
struct PassThrough<Store: RecordStore, Backend: Upstream> {
  let runner: RequestRunner<Store, Backend>
  /// The value of `Idempotency-Status`; `nil` if the response gets none.
  let label: ResponseLabel?

  private var worker: Worker<Store, Backend> { runner.worker }
  private var delivery: Delivery { runner.delivery }
  private var head: MessageHead { runner.head }

  /// Forwards the request, and gives the client the response as it comes. Most responses arrive whole; only the others
  /// need a task.
  ///
  /// - Parameter finish: Called at the end.
  @inline(never)
  func start(
    _ target: RequestTarget, by route: Route?, finish: @escaping @Sendable () -> Void
  ) throws(Problem) {
    // Without a client, the exchange would occupy the backend for a response that nobody gets.
    guard delivery.isConnected else { return finish() }
    let (exchange, span) = try send(target, by: route)
    let sentAt = didSend()
    exchange.whenReady(within: span) {
      var begun: ResponseRelay?
      if let head = exchange.readyHead, head.head.status != 101 {
        begun = begin(exchange, head)
        guard begun != nil else {
          end(exchange, sentAt)
          return finish()
        }
      }
      worker.context.task { [begun] in
        do throws(PassageFailure) {
          _ = try await rest(of: exchange, begun, within: span, sentAt)
        } catch {
          fail(error)
        }
        finish()
      }
    }
  }

  /// Forwards the request, and gives the client the response as it comes.
  ///
  /// - Parameter id: The ID of the record that the request would have on a protected route, while the store is away.
  /// - Returns: The response's head; `nil` if the client went away before the response was whole, or the ending
  ///   process has responded.
  @discardableResult @inline(never)
  func run(
    _ target: RequestTarget, by route: Route?, id: RecordID? = nil
  ) async throws(PassageFailure) -> UpstreamHead? {
    if awaitsBody { await delivery.awaitBeginning() }
    if let failure = delivery.bodyFailure { throw PassageFailure(problem: failure, isUnsent: true) }
    guard delivery.isConnected else { return nil }
    let (exchange, span): (Backend.Exchange, Milliseconds)
    do throws(Problem) { (exchange, span) = try send(target, by: route, id) } catch {
      throw PassageFailure(problem: error, isUnsent: true)
    }
    return try await rest(of: exchange, nil, within: span, didSend())
  }

  /// Whether more of the body is awaited before the exchange begins. Calls of gRPC begin at once: they may be
  /// conversations.
  var awaitsBody: Bool { delivery.isBodyAwaited && !head.isGRPC }

  private func didSend() -> NIODeadline {
    let sentAt = NIODeadline.now()
    delivery.logEntry.outcome = RequestOutcome(label)
    delivery.logEntry.trace?.forwardAt = sentAt.uptimeNanoseconds
    return sentAt
  }

  /// Refuses a request that got no response. A client that hung up has ended the exchange itself: nobody failed it.
  func fail(_ failure: PassageFailure) {
    guard delivery.isConnected else { return delivery.logEntry.outcome = .cut }
    runner.refuse(failure.problem)
  }

  private func end(_ exchange: Backend.Exchange, _ sentAt: NIODeadline) {
    delivery.didDisconnect = nil
    delivery.didHalfClose = nil
    delivery.logEntry.upstreamMicroseconds = runner.microseconds(since: sentAt)
    exchange.close()
  }

  /// Gives the client the rest of the response.
  ///
  /// - Parameter begun: The relay of a response whose beginning was sent.
  @inline(never)
  private func rest(
    of exchange: Backend.Exchange, _ begun: ResponseRelay?, within span: Milliseconds, _ sentAt: NIODeadline
  ) async throws(PassageFailure) -> UpstreamHead? {
    defer { end(exchange, sentAt) }
    do throws(UpstreamFailure) {
      guard let begun else { return try await relay(exchange, within: span) }
      _ = try await passOn(exchange, by: begun)
      return nil
    } catch {
      throw PassageFailure(
        problem: problem(of: error), isUnsent: error.isUnsent, failure: error, head: exchange.readyHead?.head)
    }
  }

  /// Begins an exchange with the backend, whose response is to begin within the span.
  @inline(never)
  private func send(
    _ target: RequestTarget, by route: Route?, _ id: RecordID? = nil
  ) throws(Problem) -> (Backend.Exchange, Milliseconds) {
    guard let upstream = route?.policy.upstream ?? delivery.configuration.fallback else { throw .noRoute }
    let exchange = worker.backend.begin(
      UpstreamRequest(
        upstream: upstream, method: head.methodText, target: target.text,
        fields: UpstreamFields.make(for: delivery, target, to: upstream, id: id, by: id == nil ? nil : route),
        body: body,
        permit: nil, memory: delivery, interim: delivery, upgrade: upgrade,
        bindsConnection: head.bindsConnection,
        overridesMethod: head.mayOverrideMethod(query: target.query), isProtected: id != nil))
    // Otherwise Semel would wait for a silent backend although the client is gone.
    delivery.didDisconnect = { [context = worker.context] in context.task { exchange.close() } }
    if id == nil { limitSilenceOnceHalfClosed(exchange) }
    return (exchange, route?.policy.timeToResponse ?? upstream.responseTimeout)
  }

  /// Limits the backend's silence once the client has ended its sending side. The client may be gone, which only a
  /// write shows. A silent backend causes no write, so the exchange would hold its connection for ever.
  private func limitSilenceOnceHalfClosed(_ exchange: Backend.Exchange) {
    let span = delivery.configuration.limits.idleTimeout
    if delivery.isHalfClosed {
      exchange.limitSilence(to: span)
    } else {
      delivery.didHalfClose = { exchange.limitSilence(to: span) }
    }
  }

  /// The protocols that the client wants to switch to. A request with content would have to be read first, by HTTP/1.1.
  /// An upgrade to another form of HTTP is not forwarded, because its requests would bypass the routes.
  private var upgrade: ByteBuffer? {
    guard head.requestsUpgrade, head.connectionNames("upgrade"), delivery.request.framing.isEmpty,
      head.minorVersion == 1, head.upgradesLeaveHTTP
    else { return nil }
    return head.first(.upgrade).map { head.slice($0.valueRange) }
  }

  private var body: RequestBody {
    switch delivery.request.framing {
    case .none: return .none
    case .length(let length):
      if let body = delivery.wholeBody { return .whole(body) }
      return .streamed(delivery, length: length)
    case .chunked:
      return .streamed(delivery, length: nil)
    }
  }

  /// Gives the client each piece as it comes.
  @inline(never)
  private func relay(
    _ exchange: Backend.Exchange, within span: Milliseconds
  ) async throws(UpstreamFailure) -> UpstreamHead? {
    let head = try await exchange.head(within: span)
    // A process that ends may have responded meanwhile.
    guard delivery.responseState == .none else { return nil }
    if head.head.status == 101 {
      try await tunnel(exchange, head.head)
    } else if let relay = begin(exchange, head) {
      guard try await passOn(exchange, by: relay) else { return nil }
    }
    // Only the end shows whether a response by the connection's end was whole.
    return exchange.readyHead ?? head
  }

  /// Passes the body on. False if the client went away before the end.
  @inline(never)
  private func passOn(
    _ exchange: Backend.Exchange, by relay: ResponseRelay
  ) async throws(UpstreamFailure) -> Bool {
    let pause = delivery.configuration.limits.tunnelTimeout
    var isWhole = false
    while delivery.isConnected, !isWhole {
      if let piece = try await exchange.read(within: pause) {
        await relay.write(piece)
      } else {
        isWhole = true
      }
    }
    relay.end(trailers: exchange.trailers)
    return isWhole
  }

  /// Writes the part of a response that has arrived; `nil` if that is all of it.
  @inline(never)
  private func begin(_ exchange: Backend.Exchange, _ head: UpstreamHead) -> ResponseRelay? {
    let ready = exchange.takeReady()
    guard !ready.isEnd else {
      BackendResponse(head: head, body: ready.bytes, trailers: exchange.trailers)
        .send(to: delivery, label: label)
      return nil
    }
    let relay = ResponseRelay(head: head.head, label: label, delivery: delivery)
    relay.begin(with: ready.bytes)
    return relay
  }

  /// Passes bytes as they are, until the backend ends or the client is gone.
  @inline(never)
  private func tunnel(_ exchange: Backend.Exchange, _ head: MessageHead) async throws(UpstreamFailure) {
    delivery.logEntry.outcome = .upgraded
    delivery.switchProtocols(head, label: label)
    exchange.tunnel(delivery)
    while delivery.isConnected, let piece = try await exchange.read(within: nil) {
      await delivery.write(piece)
    }
    delivery.end()
  }

  private func problem(of failure: UpstreamFailure) -> Problem {
    switch failure {
    case .notSent: delivery.recordID == nil ? .passageNotBegun : .upstreamUnreachable
    case .busy: delivery.recordID == nil ? .passageBusy : .overloaded(.backend)
    case .headTooLarge: .headerTooLarge
    case .responseLost, .malformed: .passageLost(.broken)
    case .timedOut: .passageLost(.timedOut)
    // The client broke its body off, or sent nothing of it for too long.
    case .requestBody: delivery.bodyFailure ?? .requestTimeout
    }
  }
}

/// The end of a passage without a whole response.
struct PassageFailure: Error {
  let problem: Problem
  /// Whether the backend has certainly not executed the request.
  let isUnsent: Bool
  /// The failure of the exchange; `nil` if there was no exchange.
  var failure: UpstreamFailure?
  /// The head of the response that has failed, if it has arrived.
  var head: MessageHead?
}

extension UpstreamFailure {
  fileprivate var isUnsent: Bool {
    switch self {
    case .notSent, .busy, .headTooLarge: true
    case .responseLost, .malformed, .timedOut, .requestBody: false
    }
  }
}

// The run without a record while the store is away, on a route with `on_store_failure: open`.
extension PassThrough {
  /// Forwards the request and gives the client the response as it comes. Until the end, the process knows the record as
  /// in progress; after it as unknown if the backend may have run the request and the response was lost.
  ///
  /// - Parameter unused: The claim, if the store may have granted it all the same.
  @inline(never)
  func run(
    _ call: KeyedCall, without request: ClaimRequest, unused: UnusedClaim?
  ) async throws(Problem) {
    invariant(
      call.route.policy.onStoreFailure == .open, "a request runs without its record on a closed route")
    invariant(request.id == call.id, "a request runs beside the record of another one")
    var isLost = true
    defer {
      worker.environment.known.change(request.id) {
        $0 = $0?.ended(unprotected: request, isLost: isLost, now: $1)
      }
    }
    guard delivery.isConnected else {
      isLost = false
      if let unused { await worker.undo(unused) }
      return
    }
    do throws(PassageFailure) {
      if let head = try await run(call.target, by: call.route, id: call.id) {
        isLost = call.route.policy.leavesUnknown(head.head)
      }
    } catch {
      if error.isUnsent {
        isLost = false
        if let unused { await worker.undo(unused) }
      }
      fail(error)
    }
  }
}

import Idempotency
import Loop
import NIOCore
import Telemetry
import Wire

/// Runs one delivery from its head to its answer: identify, claim, forward, capture, record, answer.
///
/// What follows what is decided by `Exchange`; this file does it. Other ends stand beside it: passing through
/// (`+Passage`), waiting for another delivery (`DuplicateWait`), storing later (`+Storing`).
struct RequestRunner<Store: RecordStore, Backend: Upstream>: Sendable {
  let worker: Worker<Store, Backend>
  let delivery: Delivery

  var environment: ProxyEnvironment { worker.environment }
  var generation: Generation { delivery.generation }
  var head: MessageHead { delivery.request.head }

  /// Begins. What can be answered at once is; the rest goes on in a task of its own, which outlives the connection.
  func start() {
    let inFlight = environment.counters.change(.inFlight, by: 1)
    beginTrace()
    do throws(Problem) {
      guard !environment.isDraining else { throw .overloaded(.draining, retryAfter: 1000) }
      guard inFlight <= generation.limits.maxInFlight else { throw .overloaded(.busy, retryAfter: 1000) }
      if let failure = delivery.bodyFailure { throw failure }
      let subject = try identify(body: delivery.wholeBody)
      guard case .keyed(let call, let fingerprint) = subject else { return runLater(subject) }
      guard let record = kept(call, fingerprint) else { return claim(call, fingerprint) }
      replay(record, from: .cache)
    } catch {
      refuse(error)
    }
    finish()
  }

  private func runLater(_ subject: Subject) {
    _ = Task(executorPreference: worker.context.executor) { await run(subject) }
  }

  private func run(_ subject: Subject) async {
    do throws(Problem) {
      switch subject {
      case .passed(let target, let route, let label):
        try await passThrough(target, by: route, label: label)
      case .keyed(let call, let fingerprint):
        let request = call.claimRequest(owner: worker.newOwner(), fingerprint: fingerprint)
        try await act(on: await ask(for: request), to: request, of: call)
      case .claimed(let reply, let request, let call):
        try await act(on: reply, to: request, of: call)
      case .incomplete(let limit):
        let subject = try identify(body: try await delivery.collectBody(limit: limit))
        guard case .keyed(let call, let fingerprint) = subject, let record = kept(call, fingerprint) else {
          return await run(subject)
        }
        replay(record, from: .cache)
      }
    } catch {
      refuse(error)
    }
    finish()
  }

  private func finish() {
    environment.counters.change(.inFlight, by: -1)
    delivery.runEnded()
    tell()
  }

  /// Where the request goes by its own word: one path and one host, in the form in which they are matched.
  private func addressed() throws(Problem) -> (RequestTarget, ByteBuffer) {
    do {
      let target = try RequestTarget(head)
      return (target, try RequestHost(of: head, target: target)?.name ?? ByteBuffer())
    } catch {
      throw .unreadable(error)
    }
  }

  /// What a request is about, as far as that is known.
  private enum Subject {
    indirect case passed(RequestTarget, by: Route?, label: AnswerLabel?)
    case keyed(KeyedCall, Fingerprint)
    /// The store was asked, and has answered.
    indirect case claimed(ClaimReply, ClaimRequest, KeyedCall)
    /// Accepted by its head; its body, of at most so many bytes, has to be read first.
    case incomplete(limit: Int)
  }

  /// Identify: who asks for what, under which key. Nothing is claimed or sent before all of it is accepted.
  @inline(never)
  private func identify(body: ByteBuffer?) throws(Problem) -> Subject {
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
    guard let key = try key(finding, in: body, of: target, by: route) else {
      return try unkeyed(target, by: route)
    }
    let call = KeyedCall(
      route: route, target: target, body: body,
      id: .make(
        caller: caller, upstream: route.policy.upstream.name, host: host,
        method: head.slice(head.methodRange),
        place: route.policy.endpoint == .path ? .path(target.path) : .route(route.policy.name), key: key))
    return .keyed(call, call.fingerprint(by: route.policy.recipe, head: head))
  }

  private func caller(of route: Route) throws(Problem) -> Caller {
    guard let policy = route.policy.caller else {
      preconditionFailure("RequestRunner: a protected route without caller")
    }
    let caller = try policy.caller(head: head, peer: delivery.peer.caller)
    if generation.accessLog.isEnabled { delivery.record.callerDigest = caller.digestText }
    return caller
  }

  /// The key that was found in the head, or the one that stands in the body.
  private func key(
    _ finding: KeyFinding, in body: ByteBuffer, of target: RequestTarget, by route: Route
  ) throws(Problem) -> IdempotencyKey? {
    let key: IdempotencyKey?
    if case .found(let found) = finding {
      key = found
    } else {
      key = try route.policy.key.key(head: head, query: target.query, body: body)
    }
    if generation.accessLog.isEnabled { delivery.record.keyDigest = key?.digestText ?? "" }
    return key
  }

  /// A request without a key on a protected route: refused where one is required, else passed through.
  private func unkeyed(_ target: RequestTarget, by route: Route) throws(Problem) -> Subject {
    guard route.policy.idempotency == .optional else { throw .keyMissing(route.policy.key) }
    return .passed(target, by: route, label: nil)
  }

  /// The recorded outcome that this process keeps, where it is one to replay.
  private func kept(_ call: KeyedCall, _ fingerprint: Fingerprint) -> CompletedRecord? {
    worker.store.cached(call.id, fingerprint)?.replayable
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

  /// Claim: one delivery becomes the record's owner, the others replay, wait or are refused. A task is made only for
  /// what has to wait once more: most duplicates are answered from the store's first reply.
  @inline(never)
  private func claim(_ call: KeyedCall, _ fingerprint: Fingerprint) {
    let request = call.claimRequest(owner: worker.newOwner(), fingerprint: fingerprint)
    let askedAt = asking()
    let isAsked = worker.store.claim(request) { reply in
      answered(askedAt)
      guard case .success(let outcome) = reply, let record = outcome.replayable else {
        return runLater(.claimed(reply, request, call))
      }
      replay(record, from: .store)
      finish()
    }
    if !isAsked { runLater(.keyed(call, fingerprint)) }
  }

  /// Goes on by what the store said, and asks it again as often as that takes.
  private func act(
    on reply: ClaimReply, to request: ClaimRequest, of call: KeyedCall
  ) async throws(Problem) {
    var exchange = Exchange(route: call.route)
    var (reply, request) = (reply, request)
    var wait: DuplicateWait<Store>?
    defer { wait?.end() }
    while true {
      switch action(by: reply, to: request, &exchange) {
      case .forward(let claim):
        wait?.end()
        wait = nil
        guard try await forward(call, claim, &exchange) == .becomeDuplicate else { return }
        request = request.changed(owner: worker.newOwner())
      case .replay(let record):
        return replay(record, from: wait == nil ? .store : .wait)
      case .compare(let recipe):
        request = request.changed(fingerprint: call.fingerprint(by: recipe, head: head))
      case .wait(let leaseLeft):
        guard try await mayAskAgain(&wait, for: call, leaseLeft) else {
          throw duplicate(exchange.gaveUpWaiting())
        }
        guard delivery.isConnected else { return }
      case .refuse(let problem):
        throw duplicate(problem)
      case .forwardUnprotected:
        return try await passUnprotected(call)
      }
      reply = await ask(for: request)
    }
  }

  @inline(never)
  private func passUnprotected(_ call: KeyedCall) async throws(Problem) {
    try await passThrough(call.target, by: call.route, label: .unprotected)
  }

  /// Waits until the record may have changed; false where the delivery may not wait, or has waited long enough.
  @inline(never)
  private func mayAskAgain(
    _ wait: inout DuplicateWait<Store>?, for call: KeyedCall, _ leaseLeft: Milliseconds
  ) async throws(Problem) -> Bool {
    if let wait { return await wait.changed(leaseLeft: leaseLeft) }
    // Subscribed first, then asked again: no end is missed in between.
    wait = try await DuplicateWait(for: call, of: self)
    return wait != nil
  }

  /// A refusal because of what the store says of the record: of another delivery of the key, unless it says nothing.
  private func duplicate(_ problem: Problem) -> Problem {
    delivery.record.isDuplicateRefused = problem.code != .storeUnavailable && problem.code != .storeUnreadable
    return problem
  }

  private func ask(for request: ClaimRequest) async -> ClaimReply {
    let askedAt = asking()
    defer { answered(askedAt) }
    do throws(StoreError) {
      return .success(try await worker.store.claim(request))
    } catch {
      return .failure(error)
    }
  }

  private func asking() -> NIODeadline {
    let now = NIODeadline.now()
    if delivery.record.trace?.claimAt == 0 { delivery.record.trace?.claimAt = now.uptimeNanoseconds }
    return now
  }

  private func answered(_ askedAt: NIODeadline) {
    delivery.record.claimMicroseconds += microseconds(since: askedAt)
  }

  /// What to do by the store's reply.
  @inline(never)
  private func action(
    by reply: ClaimReply, to request: ClaimRequest, _ exchange: inout Exchange
  ) -> Exchange.ClaimedAction {
    switch reply {
    case .success(let outcome):
      return exchange.claimed(outcome)
    case .failure(let error):
      if case .fateUnknown = error {
        worker.metrics.add(.claimsLost)
        giveBack(request)
      }
      return exchange.claimFailed(error)
    }
  }
}

private typealias ClaimReply = Result<ClaimOutcome, StoreError>

extension ClaimOutcome {
  /// The recorded outcome, where it is one to replay.
  fileprivate var replayable: CompletedRecord? {
    guard case .taken(.completed(let record)) = self, case .kept = record.outcome else { return nil }
    return record
  }
}

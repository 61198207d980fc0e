import Idempotency
import Logging
import NIOCore
import Platform
import Telemetry
import Wire

/// Identify: the caller, the target and the key of a request. Nothing is claimed or sent before all of it is accepted.
extension RequestRunner {
  /// The subject of a request.
  enum Subject {
    case passed(RequestTarget, by: Route?, label: ResponseLabel?)
    case keyed(KeyedCall)
    /// A batch, each item of which has a record of its own.
    case batch(BatchCall)
    /// Accepted by its head; its body, of at most `limit` bytes, has to be read first.
    case incomplete(limit: Int)
    /// Accepted by its head, with a body that has to be read beside the loop.
    case large(LargeRequest)
    /// Its route depends on the GraphQL operation in its body, which has to be read beside the loop.
    case operation(ByteBuffer, RequestTarget)
    /// Its tokens in these places have to be verified first, beside the loop.
    case unverified(at: [TokenPlace])
    /// A request of a route that is only observed.
    case shadowed(ShadowedRequest)
    /// A request that Semel itself responds to.
    case published(OwnResponse)
    case inquiry(OutcomeInquiry)
  }

  @inline(never)
  func identify(body: ByteBuffer?) throws(Problem) -> Subject {
    let (target, host): (RequestTarget, RequestHost?)
    do throws(Problem) {
      (target, host) = try configuration.routes.address(
        of: head, operation: delivery.operation, form: delivery.form)
    } catch {
      guard let subject = try ambiguous() else { throw error }
      return subject
    }
    guard target.form != .authority else { throw .notImplemented }
    if head.method == .options, let subject = preflighted(target, host: host) { return subject }
    if let path = ReservedPath(head, path: target.path),
      let subject = try reserved(path, target, host: host)
    {
      return subject
    }
    let choice = try configuration.routes.choice(
      for: head, host: host?.name ?? ByteBuffer(), path: target.path, query: target.query,
      operation: delivery.operation, form: delivery.form)
    noteRoute(choice.route)
    noteOrigin(by: choice.route)
    if let span = choice.route?.policy.bodyTimeout { delivery.bodyTimeout = span }
    if let profile = choice.route?.policy.profile { delivery.errorFormat = profile.errorFormat }
    guard let route = choice.route, route.policy.isProtected else {
      return try unprotected(target, by: choice.route)
    }
    guard !route.policy.shadow else { return .shadowed(ShadowedRequest(choice, route, target, host)) }
    if route.statesMore { delivery.routeFields = RouteFields(route) }
    if choice.isUndecided { return try undecided(route, target, body) }
    return try protected(choice, route, target, host, body)
  }

  /// The subject of a request whose route keeps records.
  @inline(__always)
  func protected(
    _ choice: RouteTable.Choice, _ route: Route, _ target: RequestTarget, _ host: RequestHost?,
    _ body: ByteBuffer?
  ) throws(Problem) -> Subject {
    let finding = try route.policy.key.keyBeforeBody(head: head, query: target.query)
    try route.refuseUnprotectable(head, finding)
    if case .found(let key) = finding { noteEcho(of: key, by: route) }
    try route.refuseUnrepeatable(head, finding, now: WallClock.seconds)
    if case .missing = finding { return try unkeyed(target, by: route) }
    guard let peer = identifiedPeer(tokensAt: route.tokenPlaces) else {
      return .unverified(at: route.tokenPlaces)
    }
    let caller = try caller(of: route, target, peer)
    let limit = route.policy.maxRequestBody
    guard let body else {
      if case .known(let caller) = caller, !route.policy.shadow { try enterQuota(of: caller, by: route) }
      return .incomplete(limit: limit)
    }
    guard body.readableBytes <= limit else { throw .requestTooLarge(limit: limit) }
    let accepted = AcceptedHead(
      head: head, route: route, target: target, host: host, method: choice.method,
      caller: caller, finding: finding,
      identityKey: environment.identityKey,
      // Digests under this process's own secret match no other node's.
      digests: route.policy.explainsMismatch && environment.digests.isShared ? environment.digests : nil)
    return try subject(of: accepted, body)
  }

  /// The subject of a request whose head has been accepted.
  private func subject(of accepted: AcceptedHead, _ body: ByteBuffer) throws(Problem) -> Subject {
    guard worker.bodies.mayReadOnLoop(accepted.loopBytes(of: body)) else {
      return .large(LargeRequest(accepted, body: body))
    }
    if let policy = accepted.route.policy.batch { return .batch(try accepted.readBatch(body, policy)) }
    return try subject(by: try accepted.read(body), of: accepted)
  }

  /// Reads a large body beside the loop.
  @inline(never)
  func identify(_ request: LargeRequest) async throws(Problem) -> Subject {
    if let policy = request.accepted.route.policy.batch {
      let batch = await worker.bodies.read(request.bytes, of: delivery.connection) {
        request.readBatch(policy)
      }
      return .batch(try batch.get())
    }
    let call = await worker.bodies.read(request.bytes, of: delivery.connection) { request.read() }
    return try subject(by: try call.get(), of: request.accepted)
  }

  private func subject(by call: KeyedCall?, of accepted: AcceptedHead) throws(Problem) -> Subject {
    guard let call else { return try unkeyed(accepted.target, by: accepted.route) }
    delivery.recordID = call.id
    noteEcho(of: call.key, by: accepted.route)
    if configuration.accessLog.isEnabled { noteIdentity(of: call) }
    return .keyed(call)
  }

  /// Notes the key that the response is to repeat.
  @inline(__always)
  private func noteEcho(of key: IdempotencyKey, by route: Route) {
    guard route.policy.echoesKey, !route.policy.shadow else { return }
    delivery.routeFields = RouteFields(route, echo: route.policy.key.echo(of: key, in: head))
  }

  /// The subject of a request whose path two readers may take differently; `nil` if one of them may take it for a
  /// protected one, or if something else is wrong with the request.
  @inline(never)
  private func ambiguous() throws(Problem) -> Subject? {
    guard let (target, host) = try? head.addressed(reading: .asReceived) else { return nil }
    let (routes, name) = (configuration.routes, host?.name ?? ByteBuffer())
    guard !routes.mayProtect(head, host: name, path: target.path, query: target.query) else { return nil }
    let route = routes.route(
      for: head, method: head.slice(head.methodRange), host: name, path: target.path,
      operation: delivery.operation)
    guard route?.policy.isEnforced != true else { return nil }
    noteRoute(route)
    return try unprotected(target, by: route)
  }

  /// The subject of a request that no route protects. It is passed through, unless it has a key and such keys are
  /// refused.
  private func unprotected(_ target: RequestTarget, by route: Route?) throws(Problem) -> Subject {
    guard configuration.routes.carriesKey(head) else { return .passed(target, by: route, label: nil) }
    let number = route?.number ?? 0
    worker.metrics.add(.unprotectedKeys, route: number)
    // Of a method that Semel does not know nothing is shown.
    let method = head.method == .other ? "(other)" : String(buffer: head.slice(head.methodRange))
    let shape = "\(method) \(PathShape.text(of: target.path))"
    if let entry = environment.unprotectedKeys.count(number, shape: shape, at: delivery.startedAt) {
      logUnprotectedKeys(entry, by: route)
    }
    guard configuration.unmatchedKeys == .pass else {
      let problem = Problem.keyNotSupported(in: head)
      delivery.routeFields = problem.status == 501 ? RouteFields(rejecting: ()) : nil
      throw problem
    }
    return .passed(target, by: route, label: .ignored)
  }

  /// Logs the number of requests with such keys, and the shapes of their paths: words, and nothing else that a client
  /// sent.
  private func logUnprotectedKeys(_ entry: UnprotectedKeys.Entry, by route: Route?) {
    let hasBackend = route != nil || configuration.fallback != nil
    let passes = configuration.unmatchedKeys == .pass && hasBackend
    let fate = passes ? "passed through unprotected" : "refused"
    let reason =
      route?.policy.isProtected == true
      ? "have it where their route does not look for one" : "match no protected route"
    environment.logger.notice(
      "requests with an idempotency key \(reason) and are \(fate)",
      metadata: [
        "route": "\(route?.policy.name ?? "(none)")", "requests": "\(entry.requests)",
        "paths": "\(entry.text)",
      ])
  }

  private func caller(
    of route: Route, _ target: RequestTarget, _ peer: CallerPeer
  ) throws(Problem) -> AcceptedHead.CallerFinding {
    let caller = try AcceptedHead.CallerFinding(by: route.policy, head: head, peer: peer, query: target.query)
    if case .known(let caller) = caller, configuration.accessLog.isEnabled { noteCaller(caller) }
    return caller
  }

  /// A request without a key on a protected route: refused where one is required, else passed through. It may have a
  /// key in a place where this route does not look for one.
  private func unkeyed(_ target: RequestTarget, by route: Route) throws(Problem) -> Subject {
    guard route.policy.idempotency == .optional else { throw .keyMissing(route.policy.key) }
    // Nothing is stated of a request without a key.
    delivery.routeFields = nil
    guard route.policy.shadow else {
      // The client believes that it has sent a key.
      let isEmpty = !configuration.routes.carriesKey(head) && route.policy.key.hasEmptyField(head)
      return isEmpty ? .passed(target, by: route, label: .ignored) : try unprotected(target, by: route)
    }
    // Nothing is refused on a shadowed route. This is its verdict alone.
    let isRefused = configuration.unmatchedKeys != .pass && configuration.routes.carriesKey(head)
    if isRefused { throw .keyNotSupported }
    return .passed(target, by: route, label: nil)
  }
}

/// The GraphQL operation of a request, where a route goes by it, and the method that a form names.
extension RequestRunner {
  /// The subject of a request that a route takes only if its body selects a mutation, or names another method. Later
  /// routes take any other one.
  ///
  /// The route's limit applies to every request that may meet the route, since a body too large to be read may hold a
  /// mutation.
  @inline(never)
  func undecided(
    _ route: Route, _ target: RequestTarget, _ body: ByteBuffer?
  ) throws(Problem) -> Subject {
    let limit = route.policy.maxRequestBody
    guard let body else { return .incomplete(limit: limit) }
    guard body.readableBytes <= limit else { throw .requestTooLarge(limit: limit) }
    guard worker.bodies.mayReadOnLoop(target.readBytes(of: body)) else { return .operation(body, target) }
    delivery.operation = GraphQLOperation(of: body, head: head, query: target.query)
    delivery.form = .read(MethodParameter.values(inBody: body, head))
    return try identify(body: body)
  }

  /// Reads the operation in a large body beside the loop.
  @inline(never)
  func readOperation(_ body: ByteBuffer, _ target: RequestTarget) async {
    let head = head
    (delivery.operation, delivery.form) = await worker.bodies.read(
      target.readBytes(of: body), of: delivery.connection
    ) {
      (
        GraphQLOperation(of: body, head: head, query: target.query),
        .read(MethodParameter.values(inBody: body, head))
      )
    }
  }
}

extension RequestTarget {
  /// The number of bytes to read for the operation of a request with this body: both may name it.
  fileprivate func readBytes(of body: ByteBuffer) -> Int {
    body.readableBytes + (query?.readableBytes ?? 0)
  }
}

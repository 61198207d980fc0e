import Idempotency
import Logging
import NIOCore
import Platform
import Proxy
import Settings
import Wire

/// The explanation of one request: the steps of the proxy's identification, each with what it found.
struct Explanation {
  /// The lines so far, each with its label; an empty label continues the one before.
  private var lines: [(label: String, text: String)] = []
  private(set) var isRefused = false
  let settings: Settings
  let table: RouteTable
  let body: ByteBuffer
  let response: ExplainedResponse?
  /// Whether the response was explained, which needs a request that is recorded.
  var hasExplainedResponse = false
  private let namesHost: Bool

  init(
    of request: ExplainedRequest, from address: String, by settings: Settings,
    response: ExplainedResponse? = nil
  ) async {
    self.settings = settings
    table = RouteTable(settings.routes)
    body = request.body
    self.response = response
    namesHost = request.namesHost
    do throws(Problem) {
      let head = try request.head.get().head
      try await explain(head, CallerPeer(address: client(of: head, from: address)))
    } catch {
      isRefused = true
      add("refused", "\(error.status) \(error.code.rawValue): \(error.detail)")
    }
    if response != nil, !hasExplainedResponse {
      add("response", "has no class: the request is not recorded")
    }
  }

  var text: String {
    lines.map { label, text in
      (label.padding(to: 13) + text).trimmingEnd
    }.joined(separator: "\n")
  }

  mutating func add(_ label: String, _ text: String) { lines.append((label, text)) }

  mutating func add(_ label: String, _ texts: [String]) {
    for (index, text) in texts.enumerated() { add(index == 0 ? label : "", text) }
  }

  /// The client's address, as `ClientPeer.believing` finds it; `nil` if a trusted proxy states none.
  private func client(of head: MessageHead, from address: String) -> String? {
    let (trusted, peer) = (settings.trustedProxies, IPAddress(address))
    return trusted.trusts(peer) ? trusted.client(in: head)?.text : peer?.text
  }

  /// Identifies the request in the steps of `RequestRunner.identify`.
  private mutating func explain(_ head: MessageHead, _ peer: CallerPeer) async throws(Problem) {
    let (target, host): (RequestTarget, RequestHost?)
    do throws(Problem) { (target, host) = try table.address(of: head) } catch {
      guard let (target, host) = try? head.addressed(reading: .asReceived) else { throw error }
      return try explainAmbiguous(head, target, host, error)
    }
    guard target.form != .authority else { throw .notImplemented }
    let place = String(buffer: target.path) + (target.query.map { "?" + String(buffer: $0) } ?? "")
    let name = namesHost ? host.map { String(buffer: $0.name) } : nil
    add("request", "\(head.string(head.methodRange)) \(place), host \(name ?? "none")")
    if !namesHost {
      add("", "(one to an address; name the host that clients write by a URL, or by -H 'Host: NAME')")
    }
    if try explainPreflight(head, target, host) { return }
    switch ReservedPath(head, path: target.path) {
    case .policy? where settings.policyDocument == .on:
      let page = settings.policyPage.map { ", and leads browsers to \($0)" } ?? ""
      add("response", "Semel itself responds: its policy\(page)")
    case .outcome?: add("response", "Semel itself responds: the outcome of an earlier request")
    case .policy?, nil: try await explain(head, target, host, peer)
    }
  }

  /// Chooses the route, and explains the rest if that protects the request.
  private mutating func explain(
    _ head: MessageHead, _ target: RequestTarget, _ host: RequestHost?, _ peer: CallerPeer
  ) async throws(Problem) {
    let name = host?.name ?? ByteBuffer()
    let choice = try table.choice(for: head, host: name, target: target, body: body)
    guard !target.hasEncodedSlash || choice.route?.policy.keepsSlashes == true else {
      let (target, host) = try head.addressed(reading: .asReceived)
      return try explainAmbiguous(head, target, host, .unreadable(.badPath))
    }
    if target.hasEncodedSlash {
      add("path", "an encoded slash is a character of its segment (encoded_slashes: keep)")
    }
    let operation = GraphQLOperation(of: body, head: head, query: target.query)
    explainRoutes(head, choice, host: name, path: target.path, operation)
    if let span = choice.route?.policy.bodyTimeout {
      add("body", "may pause for \(span.text) (the route's body_timeout)")
    }
    guard let route = choice.route, route.policy.isProtected else {
      return try explainUnprotected(head, choice.route)
    }
    guard route.policy.shadow else {
      return try await explain(head, target, host, peer, route, choice)
    }
    add(
      "shadow",
      "forwarded as an unprotected request, whatever follows: that is what the route would do without `shadow: true`"
    )
    do throws(Problem) {
      try await explain(head, target, host, peer, route, choice)
    } catch {
      add("would be", "refused \(error.status) \(error.code.rawValue): \(error.detail)")
    }
  }

  private mutating func explain(
    _ head: MessageHead, _ target: RequestTarget, _ host: RequestHost?, _ peer: CallerPeer, _ route: Route,
    _ choice: RouteTable.Choice
  ) async throws(Problem) {
    let finding = try route.policy.key.keyBeforeBody(head: head, query: target.query)
    try route.refuseUnprotectable(head, finding)
    try route.refuseUnrepeatable(head, finding, now: WallClock.seconds)
    explainKey(of: route.policy, head, target, method: choice.method)
    if case .missing = finding { return try explainUnkeyed(head, route) }
    guard let peer = await identified(peer, by: route, head) else { return }
    explainCaller(of: route.policy, head, target, peer)
    let accepted = AcceptedHead(
      head: head, route: route, target: target, host: host, method: choice.method,
      caller: try .init(by: route.policy, head: head, peer: peer, query: target.query), finding: finding,
      identityKey: settings.store.idSecret.map(IdentityKey.init))
    guard body.readableBytes <= route.policy.maxRequestBody else {
      throw .requestTooLarge(limit: route.policy.maxRequestBody)
    }
    if let batch = route.policy.batch {
      return explainBatch(try accepted.readBatch(body, batch))
    }
    guard let call = try accepted.read(body) else { return try explainUnkeyed(head, route) }
    explainDigests(call)
    explainEcho(of: call.key, by: route.policy, head)
    explainFingerprint(route.policy.recipe, of: head, target, method: choice.method, call)
    explainRecords([(route.policy.shadow ? call.id.shadowed : call.id).text], route.policy)
  }

  /// The client with its token, if the route needs one; `nil` if that cannot be verified here.
  private mutating func identified(
    _ peer: CallerPeer, by route: Route, _ head: MessageHead
  ) async -> CallerPeer? {
    var peer = peer
    for place in route.tokenPlaces {
      guard let token = await token(of: head, at: place) else { return nil }
      peer.set(token, at: place)
    }
    return peer
  }

  /// The request's token in a place, verified by the keys of a file or a secret; `nil` if its keys are at a URL.
  private mutating func token(of head: MessageHead, at place: TokenPlace) async -> TokenReading? {
    switch head.token(at: place) {
    case .absent: return .absent
    case .refused(let fault): return .refused(fault)
    case .found(let text):
      if case .url(let url)? = settings.jwt?.keys {
        add(
          "caller",
          "cannot be known offline: the token is verified by the keys at \(TokenServices.shown(url))")
        return nil
      }
      let services = TokenServices(logger: Logger(label: "explain") { _ in SwiftLogNoOpLogHandler() })
      await services.adopt(settings)
      return services.verifier?.check(text).reading ?? .refused(.keysMissing)
    }
  }
}

extension Explanation {
  private mutating func explainRoutes(
    _ head: MessageHead, _ choice: RouteTable.Choice, host: ByteBuffer, path: ByteBuffer,
    _ operation: GraphQLOperation
  ) {
    let width = (settings.routes.map(\.name.count).max() ?? 0) + 2
    var texts: [String] = []
    for (index, policy) in settings.routes.enumerated() {
      let fit = RouteFit(of: policy, head, method: choice.method, host: host, path: path, operation)
      let verdict =
        if index == choice.route?.index {
          policy.isEnforced
            ? "takes it"
            : "takes it, and does not protect it (\(policy.shadow ? "shadow: true" : "idempotency: off"))"
        } else if fit.misfits.isEmpty {
          "fits, too, but \(choice.route?.policy.name ?? "another") comes first"
        } else {
          "no; " + fit.misfits.joined(separator: "; ")
        }
      texts.append(policy.name.padding(to: width) + verdict)
    }
    add("routes", texts.isEmpty ? ["none are configured"] : texts)
    if choice.method != head.slice(head.methodRange) {
      add("method", "overridden: the record is that of \(String(buffer: choice.method)) (method_override)")
    }
  }

  /// Explains a request whose path two readers may take differently, in the steps of `RequestRunner.ambiguous`.
  private mutating func explainAmbiguous(
    _ head: MessageHead, _ target: RequestTarget, _ host: RequestHost?, _ problem: Problem
  ) throws(Problem) {
    let name = host?.name ?? ByteBuffer()
    guard !table.mayProtect(head, host: name, path: target.path, query: target.query) else { throw problem }
    let route = table.route(
      for: head, method: head.slice(head.methodRange), host: name, path: target.path)
    guard route?.policy.isEnforced != true else { throw problem }
    add("path", "servers may read it differently, and none can take it for a protected one")
    try explainUnprotected(head, route)
  }

  private mutating func explainUnprotected(_ head: MessageHead, _ route: Route?) throws(Problem) {
    try explainIgnored(head, "no route protects the request")
    guard let upstream = route?.policy.upstream ?? settings.onlyUpstream else { throw .noRoute }
    add("passed", "to \(upstream.name), \(upstream.address), streamed both ways and not recorded")
  }

  private mutating func explainIgnored(_ head: MessageHead, _ reason: String) throws(Problem) {
    guard table.carriesKey(head) else { return }
    guard settings.unmatchedKeys == .pass else { throw .keyNotSupported(in: head) }
    add("key", "ignored, since \(reason) (Idempotency-Status: ignored)")
  }

  private mutating func explainUnkeyed(_ head: MessageHead, _ route: Route) throws(Problem) {
    guard route.policy.idempotency == .optional else { throw .keyMissing(route.policy.key) }
    try explainIgnored(head, "the route does not look for one where it is")
    if !table.carriesKey(head), route.policy.key.hasEmptyField(head) {
      add("key", "ignored, since it is empty (Idempotency-Status: ignored)")
    }
    let upstream = route.policy.upstream
    add(
      "passed",
      "to \(upstream.name), \(upstream.address), and not recorded: it has no key (idempotency: optional)")
  }
}

extension String {
  fileprivate var trimmingEnd: String {
    String(self[..<(lastIndex { $0 != " " }.map(index(after:)) ?? startIndex)])
  }
}

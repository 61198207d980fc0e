/// All that one route says: which requests it is for, and what Semel does with them. Made once from the configuration.
package struct RoutePolicy: Hashable, Sendable {
  package enum Idempotency: String, Sendable, CaseIterable { case required, optional, off }
  package enum Endpoint: String, Sendable, CaseIterable { case path, route }
  package enum Duplicates: String, Sendable, CaseIterable { case wait, reject }
  package enum OnUnknown: String, Sendable, CaseIterable { case hold, retry }
  package enum OnStoreFailure: String, Sendable, CaseIterable { case closed, open }
  package enum SetCookie: String, Sendable, CaseIterable { case drop, keep }

  package var name: String
  package var match: RouteMatch
  package var upstream: UpstreamSettings
  package var idempotency: Idempotency = .required
  package var key = KeyPolicy()
  /// `nil` only where `idempotency` is `off`.
  package var caller: CallerPolicy?
  package var endpoint: Endpoint = .path
  package var recipe = Recipe()
  package var mismatchStatus = 409
  package var duplicates: Duplicates = .wait
  package var waitTimeout: Milliseconds = .seconds(10)
  package var maxWaiters = 64
  package var lease: Milliseconds = .seconds(30)
  package var retention: Milliseconds = .seconds(24 * 3600)
  package var remember: Milliseconds = .seconds(24 * 3600)
  package var unknownRetention: Milliseconds = .seconds(30 * 24 * 3600)
  package var outcomes = OutcomeTable()
  package var onUnknown: OnUnknown = .hold
  /// 0: no cap.
  package var maxAttempts = 0
  package var onStoreFailure: OnStoreFailure = .closed
  /// In bytes.
  package var maxRequestBody = 1 << 20
  /// In bytes.
  package var maxResponseBody = 1 << 20
  /// Whether the client is given an answer as it comes, its last bytes once it is stored.
  package var stream = false
  /// Over the upstream's, where the route has one.
  package var responseTimeout: Milliseconds?
  package var setCookie: SetCookie = .drop

  package init(name: String, match: RouteMatch, upstream: UpstreamSettings) {
    self.name = name
    self.match = match
    self.upstream = upstream
  }

  /// How long the backend may take for its answer.
  package var timeToAnswer: Milliseconds { responseTimeout ?? upstream.responseTimeout }
}

/// Which requests a route is for.
package struct RouteMatch: Hashable, Sendable {
  /// Methods as they are spelt on the wire; empty: every one.
  package var methods: [String]
  /// `/v1/orders/{id}` matches one segment, `/v1/**` the rest; `nil`: every path.
  package var path: PathPattern?
  /// In lower case, without port; `nil`: every host.
  package var host: String?

  package init(methods: [String] = [], path: PathPattern? = nil, host: String? = nil) {
    self.methods = methods
    self.path = path
    self.host = host
  }
}

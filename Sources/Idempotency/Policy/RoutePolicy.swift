/// All that one route says: which requests it is for, and what Semel does with them. Made once from the configuration.
public struct RoutePolicy: Hashable, Sendable {
  public enum Idempotency: String, Sendable, CaseIterable { case required, optional, off }
  /// The strictness with which a request's path must be spelt to match.
  public enum Spelling: String, Sendable, CaseIterable {
    /// Repeated slashes count as one; a trailing slash and the parameters of a segment do not count.
    case lenient
    /// As `lenient`, and in any letter case.
    case caseless
    case exact
  }
  /// The content codings that a backend may choose for a response that is recorded.
  public enum ContentCoding: String, Sendable, CaseIterable {
    /// None, so that whoever retries can read the response.
    case identity
    /// Those of the client's `Accept-Encoding`.
    case pass
  }
  public enum Endpoint: String, Sendable, CaseIterable { case path, route }
  public enum Duplicates: String, Sendable, CaseIterable { case wait, reject }
  public enum OnUnknown: String, Sendable, CaseIterable { case hold, retry }
  public enum OnStoreFailure: String, Sendable, CaseIterable { case closed, open }
  public enum SetCookie: String, Sendable, CaseIterable { case drop, keep }

  public var name: String
  public var match: RouteMatch
  public var upstream: UpstreamSettings
  public var idempotency: Idempotency = .required
  public var key = KeyPolicy()
  /// `nil` only where `idempotency` is `off`.
  public var caller: CallerPolicy?
  public var endpoint: Endpoint = .path
  public var spelling: Spelling = .lenient
  public var contentCoding: ContentCoding = .identity
  public var recipe = Recipe()
  public var mismatchStatus = 409
  public var duplicates: Duplicates = .wait
  public var waitTimeout: Milliseconds = .seconds(10)
  public var maxWaiters = 64
  public var lease: Milliseconds = .seconds(30)
  public var retention: Milliseconds = .seconds(24 * 3600)
  public var remember: Milliseconds = .seconds(24 * 3600)
  public var unknownRetention: Milliseconds = .seconds(30 * 24 * 3600)
  public var outcomes = OutcomeTable()
  public var onUnknown: OnUnknown = .hold
  /// 0: no cap.
  public var maxAttempts = 0
  public var onStoreFailure: OnStoreFailure = .closed
  /// In bytes.
  public var maxRequestBody = 1 << 20
  /// In bytes.
  public var maxResponseBody = 1 << 20
  /// Whether the client is given an answer as it comes, its last bytes once it is stored.
  public var stream = false
  /// Over the upstream's, where the route has one.
  public var responseTimeout: Milliseconds?
  public var setCookie: SetCookie = .drop

  public init(name: String, match: RouteMatch, upstream: UpstreamSettings) {
    self.name = name
    self.match = match
    self.upstream = upstream
  }

  /// The methods of its requests.
  ///
  /// Where none are listed, a protected route takes those that may change something, and one that protects nothing takes
  /// all.
  public var methods: MethodSet {
    if !match.methods.isEmpty { return MethodSet(listed: match.methods) }
    return isProtected ? .unsafe : .all
  }

  /// Whether its requests are recorded and replayed.
  public var isProtected: Bool { idempotency != .off }

  /// How long the backend may take for its answer.
  public var timeToAnswer: Milliseconds { responseTimeout ?? upstream.responseTimeout }
}

/// Which requests a route is for.
public struct RouteMatch: Hashable, Sendable {
  /// Methods as they are spelt on the wire; empty: see `RoutePolicy.methods`.
  public var methods: [String]
  /// `/v1/orders/{id}` matches one segment, `/v1/**` the rest; `nil`: every path.
  public var path: PathPattern?
  /// In lower case, without port, or `*.` and a name; `nil`: every host.
  public var host: String?
  /// All of them must be there.
  public var headers: [RequiredHeader]

  public init(
    methods: [String] = [], path: PathPattern? = nil, host: String? = nil, headers: [RequiredHeader] = []
  ) {
    self.methods = methods
    self.path = path
    self.host = host
    self.headers = headers
  }
}

/// A field that a request must have for a route.
public struct RequiredHeader: Hashable, Sendable {
  /// In lower case.
  public var name: String
  /// The whole value of one of the lines.
  public var value: String

  public init(name: String, value: String) {
    self.name = name
    self.value = value
  }
}

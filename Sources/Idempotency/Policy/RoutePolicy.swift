import Wire

/// All settings of one route: the requests that it matches, and their treatment. Created once from the configuration.
public struct RoutePolicy: Hashable, Sendable {
  /// The protection of the route's requests. A request without a key is refused (`required`) or passed through
  /// (`optional`); with `off`, every request is passed through.
  public enum Idempotency: String, Sendable, CaseIterable { case required, optional, off }
  /// The strictness in matching the spelling of a request's path.
  public enum Spelling: String, Sendable, CaseIterable {
    /// Repeated slashes count as one; a trailing slash and the parameters of a segment are ignored.
    case lenient
    /// As for `lenient`; the letter case is ignored, too.
    case caseless
    case exact
  }
  /// The content codings that a backend may choose for a response that is recorded.
  public enum ContentCoding: String, Sendable, CaseIterable {
    /// None, so that every client that retries can read the response.
    case identity
    /// Those in the client's `Accept-Encoding`.
    case pass
  }
  /// The scope of a key: one normalised path, or all paths of the route.
  public enum Endpoint: String, Sendable, CaseIterable { case path, route }
  /// The host of an endpoint: the request's own, or any, so that one key serves all names of a service.
  public enum EndpointHost: String, Sendable, CaseIterable { case own, any }
  /// The treatment of a request whose path has an encoded slash, where the route could be meant: refused, since servers
  /// read it differently, or taken with the slash as a character of its segment.
  public enum EncodedSlashes: String, Sendable, CaseIterable { case refuse, keep }
  /// The treatment of a delivery while another one is in flight: it waits, or is refused at once.
  public enum Duplicates: String, Sendable, CaseIterable { case wait, reject }
  /// The treatment of an unknown outcome: it stays, or after `settle` a later delivery runs again, or has the backend
  /// queried first.
  public enum OnUnknown: String, Sendable, CaseIterable { case hold, retry, reconcile }
  /// The backend's own protection: none that counts, or a table of keys that responds 409 to one that is in progress.
  public enum Behind: String, Sendable, CaseIterable {
    case nothing
    case ownKeys = "own_keys"
  }
  /// The record after an attempt of class `retry`: kept with its payload, or forgotten as after a rejection, so that
  /// another payload may follow under the key.
  public enum Released: String, Sendable, CaseIterable { case keep, forget }
  /// The treatment of requests while the store is unavailable: refused, or forwarded unprotected.
  public enum OnStoreFailure: String, Sendable, CaseIterable { case closed, open }
  /// The treatment of `Set-Cookie` in recorded responses: left out, or kept.
  public enum SetCookie: String, Sendable, CaseIterable { case drop, keep }
  /// The part of a final response that is recorded: all of it, or its status and `Location` alone, where its body is a
  /// secret.
  public enum Recording: String, Sendable, CaseIterable { case response, status }

  public var name: String
  public var match: RouteMatch
  public var upstream: UpstreamSettings
  /// The contract whose presets the route began with; `nil` for none. It decides on the form of refusals.
  public var profile: RouteProfile?
  public var idempotency: Idempotency = .required
  public var key = KeyPolicy()
  /// The rule for callers; `nil` only if `idempotency` is `off`.
  public var caller: CallerPolicy?
  public var endpoint: Endpoint = .path
  public var endpointHost: EndpointHost = .own
  public var spelling: Spelling = .lenient
  public var encodedSlashes: EncodedSlashes = .refuse
  /// Whether the backend runs the method that a field or a parameter of a request names, instead of the written one.
  public var methodOverride = false
  public var contentCoding: ContentCoding = .identity
  /// The form in which the backend gets the fields that hold keys.
  public var forwardKey: KeyForwarding = .keep
  /// The recipe for fingerprints of new records.
  public var recipe = Recipe()
  /// Whether records keep digests of the payload's members, so that operators see how another payload differs.
  public var explainsMismatch = false
  /// The status of the refusal of another payload under a used key: 409, 422 or 400.
  public var mismatchStatus = 409
  /// The status of the refusal of a delivery while another one is in flight: 409, 425, 429 or 503.
  public var inFlightStatus = 409
  /// Whether responses repeat the request's key.
  public var echoesKey = false
  public var duplicates: Duplicates = .wait
  /// The maximum time for which a duplicate waits.
  public var waitTimeout: Milliseconds = .seconds(10)
  /// The maximum number of waiting duplicates of one key in this process. Further ones are refused.
  public var maxWaiters = 64
  /// The duration of an owner's claim without a renewal.
  public var lease: Milliseconds = .seconds(30)
  /// The time for which a response is replayed, from completion on.
  public var retention: Milliseconds = .seconds(24 * 3600)
  /// The time for which a record is remembered, from completion on; at least `retention`. Twice that by default, so that
  /// a retry after `retention` is refused and does not run.
  public var remember: Milliseconds = .seconds(48 * 3600)
  /// The time for which an unknown record is kept before it becomes a tombstone.
  public var unknownRetention: Milliseconds = .seconds(30 * 24 * 3600)
  /// The classes of responses.
  public var outcomes = OutcomeTable()
  public var released: Released = .keep
  public var behind: Behind = .nothing
  public var onUnknown: OnUnknown = .hold
  /// The query about an unknown outcome; not `nil` if `onUnknown` is `reconcile`.
  public var reconcile: ReconcilePolicy?
  /// The maximum number of attempts that are sent; `nil` for no limit.
  public var maxAttempts: Int?
  /// The retries on the client's behalf; `nil` for none.
  public var retries: RetryPolicy?
  public var onStoreFailure: OnStoreFailure = .closed
  /// The maximum length of a request's body in bytes.
  public var maxRequestBody = 1 << 20
  /// The longest pause of a request's body, and the time that all of it has besides a second for each KiB; `nil` for that
  /// of `limits`.
  public var bodyTimeout: Milliseconds?
  /// The maximum length in bytes of a response's body that is recorded.
  public var maxResponseBody = 1 << 20
  /// Whether the client receives a response while it arrives, except for its last bytes, which follow once it is
  /// stored.
  public var stream = false
  /// The time limit for a response; `nil` for the upstream's own.
  public var responseTimeout: Milliseconds?
  public var setCookie: SetCookie = .drop
  public var record: Recording = .response
  /// The fields that are left out of records.
  public var replay = ReplayPolicy()
  /// The treatment of requests by pages of other origins; `nil` leaves them to the backend.
  public var cors: CORSPolicy?
  /// The places in a batch; `nil` if each request is one intent.
  public var batch: BatchPolicy?
  /// Whether requests are only observed: forwarded once each, while records of their own keep what would have become of
  /// them.
  public var shadow = false

  public init(name: String, match: RouteMatch, upstream: UpstreamSettings) {
    self.name = name
    self.match = match
    self.upstream = upstream
  }

  /// The methods of the route's requests.
  ///
  /// If none are listed, a protected route takes all methods except the safe ones, and an unprotected route takes all.
  public var methods: MethodSet {
    if !match.methods.isEmpty { return MethodSet(listed: match.methods) }
    return isProtected ? .unsafe : .all
  }

  /// Whether the route's requests are recorded: to be replayed, or only to be observed.
  public var isProtected: Bool { idempotency != .off }

  /// Whether the route's requests are protected in fact, so that they rely on its records.
  public var isEnforced: Bool { isProtected && !shadow }

  /// Whether an encoded slash is a character of its segment in the paths of the route's requests.
  public var keepsSlashes: Bool { isProtected && encodedSlashes == .keep }

  /// The reading of a path that is stated of a request of the route.
  public var pathReading: PathReading { keepsSlashes ? .keepingSlashes : .normal }

  /// The maximum time from a claim until its exchange can have no more effect on the record.
  public var longestExchange: Milliseconds {
    // Before a retry, the claim is held for up to `wait_timeout`.
    lease + upstream.longestConnecting + timeToResponse + upstream.settle + (retries == nil ? 0 : waitTimeout)
  }

  /// The release of a record whose request was not sent, or rejected: such an attempt does not count towards
  /// `max_attempts`. Only a route with that notes so: an earlier version cannot read the number.
  public var uncountedRelease: Release { maxAttempts == nil ? .remembered : .uncounted }

  /// The time limit for the backend's response.
  public var timeToResponse: Milliseconds { responseTimeout ?? upstream.responseTimeout }
}

/// The conditions for a route's requests.
public struct RouteMatch: Hashable, Sendable {
  /// The methods in their spelling on the wire. For an empty list, see `RoutePolicy.methods`.
  public var methods: [String]
  /// The path's pattern: in `/v1/orders/{id}` a placeholder for one segment, in `/v1/**` for the rest; `nil` for every
  /// path.
  public var path: PathPattern?
  /// The host in lower case, without port, or `*.` and a name; `nil` for every host.
  public var host: String?
  /// The fields that a request must have, all of them.
  public var headers: [RequiredHeader]
  /// The GraphQL operation that the body must select; `nil` for requests of every kind.
  public var graphql: GraphQL?

  public init(
    methods: [String] = [], path: PathPattern? = nil, host: String? = nil, headers: [RequiredHeader] = [],
    graphql: GraphQL? = nil
  ) {
    self.methods = methods
    self.path = path
    self.host = host
    self.headers = headers
    self.graphql = graphql
  }

  /// The kinds of GraphQL operations by which a route may match.
  public enum GraphQL: String, Sendable, CaseIterable {
    /// A mutation, or an operation that may be one.
    case mutation
  }
}

/// A field that a request must have to match a route.
public struct RequiredHeader: Hashable, Sendable {
  /// The name in lower case.
  public var name: String
  /// The complete value of one of the field's lines.
  public var value: String

  public init(name: String, value: String) {
    self.name = name
    self.value = value
  }
}

/// The treatment of a request that has a key and matches no protected route.
public enum UnmatchedKeys: String, Sendable, CaseIterable {
  /// The request is passed through unprotected.
  case pass
  /// The request is refused, so that a client that relies on its key notices.
  case refuse
}

/// The places of a batch's items, of the key in each item, and of the results in the backend's response. Each item has
/// a record of its own.
public struct BatchPolicy: Hashable, Sendable {
  /// The default of `max_items`.
  public static let defaultMaxItems = 100

  /// JSON pointers (RFC 6901): to the array of items in the request, from an item to its key, and to the array of
  /// results in a response.
  public var items: String
  public var key: String
  public var results: String
  public var maxItems = defaultMaxItems

  public init(items: String, key: String, results: String) {
    self.items = items
    self.key = key
    self.results = results
  }

  /// The source of a key as it stands in a batch of one item.
  public var keySource: KeySource { .json("\(items)/0\(key)") }
}

extension RoutePolicy {
  /// Whether this route matches every request that another route matches, so that the other is unreachable behind it.
  public func covers(_ other: RoutePolicy) -> Bool {
    methods.isSuperset(of: other.methods) && coversHost(of: other) && coversPath(of: other)
      && match.headers.allSatisfy(other.match.headers.contains)
      && (match.graphql == nil || match.graphql == other.match.graphql)
  }

  private func coversHost(of other: RoutePolicy) -> Bool {
    guard let host = match.host else { return true }
    guard let otherHost = other.match.host else { return false }
    return HostPattern(host).covers(HostPattern(otherHost))
  }

  private func coversPath(of other: RoutePolicy) -> Bool {
    guard let path = match.path else { return true }
    guard let otherPath = other.match.path else { return false }
    return PathMatcher(path, spelling: spelling).covers(PathMatcher(otherPath, spelling: other.spelling))
  }
}

extension PathMatcher {
  /// Whether this matcher matches every path that another one matches.
  func covers(_ other: PathMatcher) -> Bool {
    if segments.isEmpty, matchesRest { return true }
    // Each lenient pattern matches spellings that no exact one matches, except for `/**`, which is handled above.
    if spelling == .exact, other.spelling != .exact { return false }
    let others =
      spelling == .exact ? other.segments : other.segments.compactMap(Self.lenient)
    guard matchesRest ? segments.count <= others.count : segments.count == others.count && !other.matchesRest
    else { return false }
    return zip(segments, others).allSatisfy { covers($0, $1, isFolded: other.spelling == .caseless) }
  }

  /// Whether every name that matches another segment matches this one.
  ///
  /// - Parameter isFolded: Whether the other segment is matched without regard to letter case.
  private func covers(_ own: PathPattern.Segment, _ other: PathPattern.Segment, isFolded: Bool) -> Bool {
    guard case .literal(let name) = own else {
      // A placeholder takes no empty segment, such as the one behind a last slash.
      return other != .literal([])
    }
    guard case .literal(let otherName) = other else { return false }
    if spelling == .caseless { return name.map(ASCII.lowercased) == otherName.map(ASCII.lowercased) }
    return name == otherName && !(isFolded && name.contains(where: ASCII.isLetter))
  }
}

extension RoutePolicy {
  /// The time for which a duplicate may wait: the route's, or less if the client prefers (RFC 7240, `wait`).
  public func maxWait(for head: MessageHead) -> Milliseconds {
    if let preferred = Self.preferredWait(head) { return min(.seconds(preferred), waitTimeout) }
    return duplicates == .wait ? waitTimeout : 0
  }

  /// The seconds of the preference; `nil` if there is none that is a number among the elements that are read. Beside
  /// `respond-async` it is the backend's: the time after which that is to respond with 202 (RFC 7240, section 4.3).
  private static func preferredWait(_ head: MessageHead) -> Int64? {
    var found: Int64?
    var isForBackend = false
    head.readList(of: FieldNameSet(.prefer)) { preference in
      isForBackend = isRespondAsync(preference)
      found = found ?? seconds(preference)
      return !isForBackend
    }
    return isForBackend ? nil : found
  }

  private static func isRespondAsync(_ preference: UnsafeRawBufferPointer) -> Bool {
    let name = MessageHead.trimmed(preference.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: "=") })
    return ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: name), "respond-async")
  }

  /// The seconds in `wait=N`, which may be quoted, and which parameters may follow; `nil` for another preference.
  private static func seconds(_ preference: UnsafeRawBufferPointer) -> Int64? {
    guard let equals = preference.firstIndex(of: UInt8(ascii: "=")) else { return nil }
    let name = MessageHead.trimmed(preference[..<equals])
    guard ASCII.equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: name), "wait") else { return nil }
    let (quote, rest) = (UInt8(ascii: "\""), preference[(equals + 1)...])
    var value = MessageHead.trimmed(rest.prefix { $0 != UInt8(ascii: ";") })
    if value.count > 1, value.first == quote, value.last == quote { value = value.dropFirst().dropLast() }
    // Nine digits of seconds exceed every limit.
    return ASCII.decimal(UnsafeRawBufferPointer(rebasing: value.prefix(9))).map { Int64($0) }
  }
}

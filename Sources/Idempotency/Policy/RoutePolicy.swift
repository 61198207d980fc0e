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
  package var setCookie: SetCookie = .drop

  package init(name: String, match: RouteMatch, upstream: UpstreamSettings) {
    self.name = name
    self.match = match
    self.upstream = upstream
  }
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

/// A path with places left open, matched segment by segment against a normalised path.
package struct PathPattern: Hashable, Sendable {
  package enum Segment: Hashable, Sendable {
    case literal([UInt8])
    /// `{name}`: any one segment that is not empty.
    case any
  }

  package let text: String
  package let segments: [Segment]
  /// Whether it ends with `/**`: whatever follows, also nothing.
  package let matchesRest: Bool

  package init(text: String, segments: [Segment], matchesRest: Bool) {
    self.text = text
    self.segments = segments
    self.matchesRest = matchesRest
  }
}

/// One configured backend.
package struct UpstreamSettings: Hashable, Sendable {
  package enum Host: Hashable, Sendable {
    /// What the client sent.
    case preserve
    /// The authority of `url`.
    case upstream
    case name(String)
  }
  package enum Address: Hashable, Sendable {
    case tcp(host: String, port: Int)
    case unix(path: String)
  }

  package var name: String
  package var address: Address
  package var host: Host = .preserve
  package var connectTimeout: Milliseconds = .seconds(2)
  package var responseTimeout: Milliseconds = .seconds(30)
  package var settle: Milliseconds = .seconds(30)
  package var idleTimeout: Milliseconds = .seconds(4)
  package var connectRetries = 3
  /// In all, over every event loop.
  package var maxConnections = 256

  package init(name: String, address: Address) {
    self.name = name
    self.address = address
  }
}

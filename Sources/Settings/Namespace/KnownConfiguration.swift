import FoundationEssentials
import Idempotency
import TLS
import Wire

/// The members of a configuration that identify its requests, in the form that a namespace remembers.
///
/// The value contains no secret: a header value that a route requires is stored as a digest.
public struct KnownConfiguration: Codable, Hashable, Sendable {
  struct Route: Codable, Hashable {
    var name: String
    var methods: [String]
    var path: String?
    var host: String?
    /// The fields that a request must have, each as its name, a colon and a digest of its value.
    var headers: [String]
    /// The kind of GraphQL operation; `nil` for a route that matches without regard to it.
    var graphql: String?
    var spelling: String
    /// Whether the route is only observed; `nil` if it is not.
    var shadow: Bool?
    /// The caller's parts; `nil`, like the members below, for a route that makes no records.
    var caller: [String]?
    /// The treatment of a missing part; `nil` for a shared caller, and in the records of earlier versions.
    var anonymous: String?
    var keys: [String]?
    /// The places of a batch's items and of their keys, if the route takes batches.
    var batch: [String]?
    /// The recipe of the fingerprint if that may be a key.
    var fingerprint: String?
    var endpoint: String?
    /// `any` if all hosts have the same ids, else `nil`.
    var endpointHost: String?
    var upstream: String?
  }

  /// The addresses of the upstreams of protected routes, by name.
  var upstreams: [String: String]
  /// The addresses of the upstreams that only other routes have, or requests without a route, by name, if there are
  /// any.
  var unprotectedUpstreams: [String: String]?
  /// A digest of what a client's address depends on, `trusted_proxies` and the listeners' `proxy_protocol`, if an
  /// address is part of any caller.
  var proxies: String?
  /// The names of the listeners' authorities for client certificates by address, empty for one without a name, if a
  /// certificate is part of any caller.
  var authorities: [String: String]?
  /// The first 32 bits of a digest of the secret for ids, if there is one: enough to notice another secret.
  var idSecret: String?
  /// All routes, since one that protects nothing may take requests from a later one.
  var routes: [Route]

  public init(_ settings: Settings) {
    let protected = settings.routes.filter(\.isEnforced)
    upstreams = Self.upstreams(of: protected)
    var others = Self.upstreams(of: settings.routes)
    if let only = settings.onlyUpstream { others[only.name] = only.address.description }
    others = others.filter { [upstreams] in upstreams[$0.key] == nil }
    unprotectedUpstreams = others.isEmpty ? nil : others
    let countsAddresses = protected.contains { $0.caller?.alternatives.contains(.address) ?? false }
    proxies = countsAddresses ? settings.trustedProxies.identityText(behind: settings.listen) : nil
    if protected.contains(where: \.countsCertificates) {
      let secured = settings.listen.filter { $0.tls?.clientCA != nil }
      authorities = Dictionary(
        secured.map { ($0.address.description, $0.tls?.clientCAName ?? "") },
        uniquingKeysWith: { first, _ in first })
    }
    idSecret = settings.store.idSecret.map { secret in
      String(Digest256.sha256(of: Array("semel id secret \(secret.revealed)".utf8)).hexText.prefix(8))
    }
    routes = settings.routes.map(Route.init)
  }

  private static func upstreams(of routes: [RoutePolicy]) -> [String: String] {
    Dictionary(
      routes.map { ($0.upstream.name, $0.upstream.address.description) },
      uniquingKeysWith: { first, _ in first })
  }

  /// The addresses of the upstreams of all routes, by name.
  var allUpstreams: [String: String] {
    upstreams.merging(unprotectedUpstreams ?? [:]) { protected, _ in protected }
  }

  /// The routes as policies, as far as a comparison needs them; `nil` if this version cannot read one of them.
  var policies: [RoutePolicy]? {
    let policies = routes.compactMap(\.policy)
    return policies.count == routes.count ? policies : nil
  }

  /// A digest that distinguishes two configurations: 128 bits in hexadecimal digits.
  public var digest: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    guard let data = try? encoder.encode(self) else {
      preconditionFailure("KnownConfiguration: not encodable")
    }
    return String(Digest256.sha256(of: Array(data)).hexText.prefix(32))
  }

  /// Whether clients' certificates were verified at one of the listeners before, under another name, or at one that is
  /// gone, under a name that is gone, too. Versions that knew no names remember no listeners.
  func renamesAuthorities(of known: KnownConfiguration) -> Bool {
    let knew = known.routes.contains { ($0.caller ?? []).contains { $0.contains("client_certificate") } }
    guard knew, let authorities else { return false }
    guard let before = known.authorities else { return authorities.values.contains { $0 != "" } }
    let gone = before.filter { authorities[$0.key] == nil && !authorities.values.contains($0.value) }
    return authorities.contains { address, name in
      if let known = before[address] { return known != name }
      return !gone.isEmpty && !before.values.contains(name)
    }
  }

  /// Whether this configuration seems to be the next version of another one: for an upstream of the same name and
  /// address it has a route by the name of one that the other protects, or protects nothing.
  func seemsToSucceed(_ known: KnownConfiguration) -> Bool {
    let (here, names) = (allUpstreams, Set(routes.map(\.name)))
    return known.upstreams.contains { name, address in
      here[name] == address
        && (upstreams[name] == nil
          || known.routes.contains { $0.upstream == name && names.contains($0.name) })
    }
  }

  var protectsNothing: Bool { routes.allSatisfy { $0.caller == nil } }
}

extension KnownConfiguration.Route {
  init(_ policy: RoutePolicy) {
    name = policy.name
    methods = policy.match.methods
    path = policy.match.path?.text
    host = policy.match.host
    headers = policy.match.headers.map { "\($0.name):\(Self.digest(of: $0.value))" }
    graphql = policy.match.graphql?.rawValue
    spelling = policy.spelling.rawValue
    if policy.shadow { shadow = true }
    guard policy.isEnforced, let caller = policy.caller else { return }
    self.caller = caller.parts.map(\.text)
    if !caller.isShared { anonymous = caller.anonymous.rawValue }
    keys = policy.key.from.map(\.text)
    batch = policy.batch.map { [$0.items, $0.key] }
    if policy.key.from.contains(.payload) { fingerprint = policy.recipe.ofKeys.text }
    endpoint = policy.endpoint.rawValue
    if policy.endpointHost == .any { endpointHost = policy.endpointHost.rawValue }
    upstream = policy.upstream.name
  }

  private var match: RouteMatch? {
    // Earlier versions kept an IPv6 address as it was written.
    let host = self.host.map { IPAddress(literal: $0)?.literal ?? $0 }
    var match = RouteMatch(methods: methods, host: host)
    if let path {
      guard let pattern = try? PathPattern(parsing: path) else { return nil }
      match.path = pattern
    }
    match.headers = headers.compactMap { header in
      let parts = header.split(separator: ":", maxSplits: 1).map(String.init)
      return parts.count == 2 ? RequiredHeader(name: parts[0], value: parts[1]) : nil
    }
    guard match.headers.count == headers.count else { return nil }
    if let graphql {
      guard let kind = RouteMatch.GraphQL(rawValue: graphql) else { return nil }
      match.graphql = kind
    }
    return match
  }

  fileprivate var policy: RoutePolicy? {
    guard let match, let spelling = RoutePolicy.Spelling(rawValue: spelling) else { return nil }
    let upstream = UpstreamSettings(name: upstream ?? "", address: .unix(path: ""))
    var policy = RoutePolicy(name: name, match: match, upstream: upstream)
    policy.spelling = spelling
    guard let caller else {
      // A shadowed route takes the methods of a protected one.
      if shadow == true { policy.shadow = true } else { policy.idempotency = .off }
      return policy
    }
    let parts = caller.compactMap { try? CallerPart.parse($0) }
    let sources = (keys ?? []).compactMap(Self.source)
    guard parts.count == caller.count, sources.count == keys?.count,
      let endpoint = RoutePolicy.Endpoint(rawValue: endpoint ?? ""),
      let endpointHost = RoutePolicy.EndpointHost(
        rawValue: endpointHost ?? RoutePolicy.EndpointHost.own.rawValue)
    else { return nil }
    // An unknown treatment counts as `allow`: a request without a part may have a record then.
    let treatment = anonymous.flatMap(CallerPolicy.Anonymous.init) ?? .allow
    policy.caller = CallerPolicy(parts: parts, anonymous: treatment)
    policy.key.from = sources
    policy.endpoint = endpoint
    policy.endpointHost = endpointHost
    if let batch {
      guard batch.count == 2 else { return nil }
      policy.batch = BatchPolicy(items: batch[0], key: batch[1], results: "")
    }
    if let fingerprint {
      guard let recipe = Recipe(text: fingerprint) else { return nil }
      policy.recipe = recipe
    }
    return policy
  }

  /// A key source in the form of `KeySource.text`.
  private static func source(_ text: String) -> KeySource? {
    guard text.hasPrefix("[") else { return try? KeySource.parse(text) }
    guard let texts = try? JSONDecoder().decode([String].self, from: Data(text.utf8)) else { return nil }
    let parts = texts.compactMap { try? KeySource.parse($0) }
    return parts.count == texts.count ? .composite(parts) : nil
  }

  /// A digest of 64 bits, since the value may be a secret between a gateway and its backends.
  private static func digest(of value: String) -> String {
    String(Digest256.sha256(of: Array(value.utf8)).hexText.prefix(16))
  }
}

extension TrustedProxies {
  fileprivate func identityText(behind listeners: [ListenSettings]) -> String {
    var texts = blocks.map { "\($0.first.text)/\($0.prefix)" } + (includesUnixSockets ? ["unix"] : [])
    let flags = Set(listeners.map(\.proxyProtocol))
    // Nothing where no listener takes the header, as in digests of before.
    if flags.contains(true) { texts.append(flags.count == 1 ? "proxy_protocol" : "proxy_protocol on some") }
    return String(Digest256.sha256(of: Array(texts.sorted().joined(separator: " ").utf8)).hexText.prefix(16))
  }
}

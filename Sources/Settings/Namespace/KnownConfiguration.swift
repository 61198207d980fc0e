import FoundationEssentials
import Idempotency
import TLS
import Wire

/// The members of a configuration that identify its requests, as a namespace remembers them. It contains no secret.
public struct KnownConfiguration: Codable, Hashable, Sendable {
  /// The addresses of the upstreams of protected routes, by name.
  var upstreams: [String: String]
  /// The addresses of all other upstreams by name, if there are any.
  var unprotectedUpstreams: [String: String]?
  /// A digest of `trusted_proxies` and the listeners' `proxy_protocol`, if an address is part of any caller.
  var proxies: String?
  /// The names of the listeners' authorities by address, empty for none, if a certificate is part of any caller.
  var authorities: [String: String]?
  /// The first 32 bits of a digest of the secret for ids, if there is one: enough to notice another secret.
  var idSecret: String?
  /// All routes, since one that protects nothing may take requests from a later one.
  var routes: [RouteIdentity]

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
    routes = settings.routes.map(RouteIdentity.init)
  }

  private static func upstreams(of routes: [RoutePolicy]) -> [String: String] {
    Dictionary(
      routes.map { ($0.upstream.name, $0.upstream.address.description) },
      uniquingKeysWith: { first, _ in first })
  }

  var protectsNothing: Bool { !routes.contains(where: \.isProtected) }

  /// A digest that distinguishes two configurations: 128 bits in hexadecimal digits.
  public var digest: String { String(Self.sha256(of: self).hexText.prefix(32)) }

  private static func sha256(of value: some Encodable) -> Digest256 {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    guard let data = try? encoder.encode(value) else {
      preconditionFailure("KnownConfiguration: not encodable")
    }
    return Digest256.sha256(of: Array(data))
  }
}

extension KnownConfiguration {
  /// The change by which a configuration in this one's place may lose records; `nil` if each request finds its record.
  ///
  /// - Parameter accepted: The digest of the latest accepted change, by which equal changes differ at other times.
  func change(to new: KnownConfiguration, after accepted: String?) -> ConfigurationChange? {
    guard !protectsNothing else { return nil }
    let changes = IdentityChange.all(from: routes, to: new.routes)
    var reasons = IdentityChange.reasons(for: changes, to: new.routes)
    if idSecret != new.idSecret { reasons.append(Self.secret) }
    if let proxies, let now = new.proxies, proxies != now { reasons.append(Self.addresses) }
    if new.renamesAuthorities(of: self) { reasons.append(Self.authorities) }
    guard !reasons.isEmpty else { return nil }
    let subject = Subject(
      accepted: accepted, lost: changes.map(\.route), routes: new.routes, members: reasons.map(\.member),
      proxies: [proxies, new.proxies], secrets: [idSecret, new.idSecret],
      authorities: [self, new].map { ($0.authorities ?? [:]).values.sorted() })
    return ConfigurationChange(reasons: reasons, digest: .init(Self.sha256(of: subject)))
  }

  /// The parts that a change's digest covers: no address of this machine, so that all nodes accept one digest.
  private struct Subject: Encodable {
    let accepted: String?
    let lost: [RouteIdentity]
    let routes: [RouteIdentity]
    let members: [String]
    let proxies: [String?]
    let secrets: [String?]
    let authorities: [[String]]
  }

  /// Whether clients' certificates were verified at one of the listeners before, under another name, or at one that is
  /// gone, under a name that is gone, too. Versions that knew no names remember no listeners.
  private func renamesAuthorities(of known: KnownConfiguration) -> Bool {
    guard known.routes.contains(where: \.countsCertificates), let authorities else { return false }
    guard let before = known.authorities else { return authorities.values.contains { $0 != "" } }
    let gone = before.filter { authorities[$0.key] == nil && !authorities.values.contains($0.value) }
    return authorities.contains { address, name in
      if let known = before[address] { return known != name }
      return !gone.isEmpty && !before.values.contains(name)
    }
  }

  /// The upstreams that have another address in another configuration, in one sentence each.
  func movedUpstreams(in other: KnownConfiguration) -> [String] {
    let here = other.allUpstreams
    return upstreams.sorted { $0.key < $1.key }.compactMap { name, address in
      guard let now = here[name], now != address else { return nil }
      return "upstream \(name) is at \(address) there and at \(now) here"
    }
  }

  private var allUpstreams: [String: String] {
    upstreams.merging(unprotectedUpstreams ?? [:]) { protected, _ in protected }
  }

  private static let addresses = ReloadPlan.Reason(
    "trusted_proxies",
    "or a listener's proxy_protocol is another than before, so that a caller's address may be another one and a retry "
      + "run again")

  private static let authorities = ReloadPlan.Reason(
    "listen",
    "gives a client_ca another client_ca_name than before, so that its clients are other callers and a retry would run "
      + "again")

  private static let secret = ReloadPlan.Reason(
    "store.id_secret_file",
    "holds another secret than before, so that a retry would find no record and run again")
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

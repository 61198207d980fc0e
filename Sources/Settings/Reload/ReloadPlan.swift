import Idempotency
import TLS
import Wire

/// The effect of a changed configuration on a running Semel, which applies all of it or nothing.
public enum ReloadPlan: Hashable, Sendable {
  case apply
  /// The old configuration stays in use. The array contains all reasons, at least one.
  case refuse([Reason])

  /// One member that prevents the reload.
  public struct Reason: Hashable, Sendable, CustomStringConvertible {
    /// The member's path in the new file, such as `listen` or `routes[0].caller`.
    public var member: String
    /// The message for the operator, with a remedy.
    public var message: String

    public init(_ member: String, _ message: String) {
      self.member = member
      self.message = message
    }

    public var description: String { "\(member): \(message)" }
  }

  public init(from old: Settings, to new: Settings) {
    let reasons = Self.listed(Self.fixed(old, new) + Self.identities(old, new))
    self = reasons.isEmpty ? .apply : .refuse(reasons)
  }
}

extension ReloadPlan {
  /// The maximum number of routes' reasons that are listed one by one: enough to see the cause, and little enough for a
  /// log and a probe's response.
  static let maxListed = 20

  /// The reasons for a person: of those about routes the first ones, and the number of the others. Without this, a file
  /// with most routes taken out would be refused with a reason for each of thousands.
  static func listed(_ reasons: [Reason]) -> [Reason] {
    var listed: [Reason] = []
    var routes = 0
    for reason in reasons {
      if reason.member.hasPrefix("routes") { routes += 1 }
      if routes <= maxListed || !reason.member.hasPrefix("routes") { listed.append(reason) }
    }
    guard routes > maxListed else { return listed }
    return listed + [Reason("routes", "… and \(routes - maxListed) more such reasons")]
  }

  /// The first of the texts, and the number of the others.
  static func listed(_ texts: [String]) -> [String] {
    guard texts.count > maxListed else { return texts }
    return texts.prefix(maxListed) + ["… and \(texts.count - maxListed) more"]
  }

  /// The members that cannot change before the process ends, since their resources are opened or divided at its start.
  private static func fixed(_ old: Settings, _ new: Settings) -> [Reason] {
    var names: [String] = []
    names += listeners(old.listen, new.listen)
    if old.admin != new.admin { names += admin(old.admin, new.admin) }
    if old.workers != new.workers { names.append("workers") }
    names += store(old.store, new.store)
    if old.log.format != new.log.format { names.append("log.format") }
    if old.tracing != new.tracing { names.append("tracing") }
    // A changed setting that no condition above names must not be ignored silently.
    if names.isEmpty, withLiveMembers(of: new, old) != withLiveMembers(of: new, new) {
      names.append("a setting that a reload cannot change")
    }
    return names.map { Reason($0, "cannot change while Semel runs; restart it, or write the old value") }
  }

  private static func listeners(_ old: [ListenSettings], _ new: [ListenSettings]) -> [String] {
    guard old.count == new.count else { return ["listen"] }
    return new.indices.flatMap { index -> [String] in
      let (before, after) = (old[index], new[index])
      guard before != after else { return [] }
      var names: [String] = []
      if before.address != after.address { names.append("address") }
      if let before = before.tls, let after = after.tls {
        if before.certificate != after.certificate { names.append("tls.certificate") }
        if before.key != after.key { names.append("tls.key") }
        if before.clientCA != after.clientCA { names.append("tls.client_ca") }
        if before.clientCAName != after.clientCAName { names.append("tls.client_ca_name") }
      } else if before.tls != after.tls {
        names.append("tls")
      }
      if before.proxyProtocol != after.proxyProtocol { names.append("proxy_protocol") }
      if before.mode != after.mode { names.append("mode") }
      return names.isEmpty ? ["listen[\(index)]"] : names.map { "listen[\(index)].\($0)" }
    }
  }

  private static func admin(_ old: AdminSettings?, _ new: AdminSettings?) -> [String] {
    guard let old, let new else { return ["admin"] }
    var names: [String] = []
    if old.host != new.host || old.port != new.port { names.append("admin.address") }
    if old.tokenFile != new.tokenFile { names.append("admin.token_file") }
    if old.hosts != new.hosts { names.append("admin.hosts") }
    return names.isEmpty ? ["admin"] : names
  }

  private static func store(_ old: StoreSettings, _ new: StoreSettings) -> [String] {
    var names: [String] = []
    switch (old.place, new.place) {
    case (.embedded(let old), .embedded(let new)):
      if old != new { names.append("store.path") }
    case (.redis(let old), .redis(let new)):
      names += redis(old, new)
    default:
      names.append("store.kind")
    }
    if old.timeout != new.timeout { names.append("store.timeout") }
    if old.trustsClock != new.trustsClock { names.append("store.trust_clock") }
    if old.namespace != new.namespace { names.append("store.namespace") }
    if old.requireDurable != new.requireDurable { names.append("store.require_durable") }
    if old.idSecretFile != new.idSecretFile || old.idSecret != new.idSecret {
      names.append("store.id_secret_file")
    }
    if old.encryption != new.encryption { names.append("store.encryption") }
    if old.compression != new.compression { names.append("store.compression") }
    if old.localCacheBytes != new.localCacheBytes { names.append("store.local_cache") }
    if names.isEmpty, old != new { names.append("store") }
    return names
  }

  private static func redis(_ old: RedisSettings, _ new: RedisSettings) -> [String] {
    var names: [String] = []
    var isStandalone = false
    if case .standalone = new.topology { isStandalone = true }
    var (before, after) = (old.login, new.login)
    (before.tls, after.tls, before.passwordFile, after.passwordFile) = (nil, nil, nil, nil)
    if old.topology != new.topology || old.database != new.database || isStandalone && before != after {
      names.append(isStandalone ? "store.url" : "store.nodes")
    }
    if old.login.tls != new.login.tls { names.append("store.tls") }
    if old.login.passwordFile != new.login.passwordFile { names.append("store.password_file") }
    if old.copies.replicas != new.copies.replicas { names.append("store.replicas") }
    if old.copies.medium != new.copies.medium { names.append("store.durable") }
    if old.copies.failoverGrace != new.copies.failoverGrace { names.append("store.failover_grace") }
    if old.sentinelLogin != new.sentinelLogin { names.append("store.sentinel") }
    return names
  }

  /// The settings with all members that may change replaced by the new ones. A remaining difference is one that may not
  /// change.
  private static func withLiveMembers(of new: Settings, _ settings: Settings) -> Settings {
    var settings = settings
    settings.routes = new.routes
    settings.upstreams = new.upstreams
    settings.trustedProxies = new.trustedProxies
    settings.unmatchedKeys = new.unmatchedKeys
    settings.underscores = new.underscores
    settings.limits = new.limits
    settings.log = new.log
    settings.jwt = new.jwt
    settings.drainDelay = new.drainDelay
    settings.shutdownGrace = new.shutdownGrace
    settings.readiness = new.readiness
    settings.policyDocument = new.policyDocument
    settings.allowsIdentityChange = new.allowsIdentityChange
    settings.warnings = new.warnings
    return settings
  }

  private static func identities(_ old: Settings, _ new: Settings) -> [Reason] {
    guard !new.allowsIdentityChange else { return [] }
    let changes = IdentityComparison(from: old.routes, to: new.routes).changes()
    return IdentityChange.reasons(for: changes, from: old.routes, to: new.routes, since: "as it runs")
      + addresses(old, new)
  }

  /// The reason against a change of the trusted proxies, which determine the address of a caller.
  private static func addresses(_ old: Settings, _ new: Settings) -> [Reason] {
    let routes = new.routes.filter { $0.isEnforced && $0.caller?.parts.contains(.address) ?? false }
    let (before, after) = (old.trustedProxies, new.trustedProxies)
    // Their order decides nothing.
    guard Set(before.blocks) != Set(after.blocks) || before.includesUnixSockets != after.includesUnixSockets,
      let route = routes.first
    else { return [] }
    return [
      Reason(
        "trusted_proxies",
        "says which address a caller of \(route.name) has, so that a retry may find no record and run again; "
          + "write allow_identity_change: true to accept that")
    ]
  }
}

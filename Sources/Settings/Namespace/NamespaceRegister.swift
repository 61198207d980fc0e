import FoundationEssentials
import Idempotency

/// The configurations that a namespace has been used with, as one text in its store. Performs no I/O.
///
/// Records are found only by requests that are identified in the same way as before. A configuration that succeeds
/// another one of the same service must therefore identify requests in the same way, and configurations of different
/// services must not share records. No setting names the service of a configuration, so it is inferred from upstreams
/// and routes:
///
/// - A configuration with routes for requests of the other, and with an upstream of the same name, succeeds it. So does
///   one whose upstream of that name has the same address.
/// - A loopback address in a shared store proves less, since it may be another sidecar's. A configuration that is new
///   in the namespace, and surely succeeds none there, then succeeds the other if one of its routes has the name of a
///   protected route of the other's for that upstream, or if it protects nothing of that upstream: loss of protection
///   must not pass for another service.
/// - A configuration that records requests of the other, for an upstream at the same address and by another name,
///   succeeds it: the upstream was renamed.
/// - In a store that only one process can open, every configuration succeeds the previous one.
/// - Any other configuration with an upstream of the same name belongs to another service, which may come to share its
///   records. One that records the same requests for an upstream of another name belongs to another service, too, or
///   its upstream was renamed.
///
/// The routes of a configuration that is succeeded count if their upstream is still there. If it is not, they count as
/// far as other routes take their requests: the upstream was renamed, and not given up.
public struct NamespaceRegister: Codable, Sendable {
  public struct Judgement: Hashable, Sendable {
    /// The new text of the namespace; `nil` if it stays the same.
    public var text: String?
    /// The reasons why requests would be identified in another way than before.
    public var changes: [ReloadPlan.Reason] = []
    /// The configurations that seem to belong to other services, in one sentence each.
    public var foreign: [String] = []
    /// The routes that record requests here and, for an upstream of another name, in a configuration that is not
    /// succeeded, in one sentence each.
    public var renamed: [String] = []
    /// Whether this configuration succeeds none of those that the namespace remembers.
    public var followsNone = true
    /// Whether this version cannot read the namespace's text, or a configuration in it, for instance because a newer
    /// one wrote it, so that it was not compared.
    public var isUnreadable = false
  }

  /// The maximum number of configurations, which is more than any namespace has. The oldest are dropped.
  private static let limit = 16
  private static let version = 1

  private var version = Self.version
  private var configurations: [KnownConfiguration] = []

  private init() {}

  /// Reads a namespace's text; `nil` for a text of another version.
  private init?(_ text: String) {
    guard let register = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)),
      register.version == Self.version
    else { return nil }
    self = register
  }

  /// Compares a configuration with those that the namespace remembers, and puts it in the place of those that it
  /// succeeds.
  ///
  /// - Parameters:
  ///   - text: The namespace's text; `nil` for a namespace that has none yet.
  ///   - isShared: Whether several processes use the store.
  public static func judge(_ own: KnownConfiguration, in text: String?, isShared: Bool) -> Judgement {
    var judgement = Judgement()
    guard var register = text.map({ Self($0) }) ?? Self() else {
      judgement.isUnreadable = true
      return judgement
    }
    let isNew = !register.configurations.contains(own)
    let remembered = register.configurations.filter { $0 != own }
    var relations = remembered.map { Relation(own, to: $0, isShared: isShared) }
    if isNew, isShared, !relations.contains(where: \.follows) {
      for (index, known) in remembered.enumerated() where own.seemsToSucceed(known) {
        relations[index] = Relation(own, to: known, isShared: true, seemsToFollow: true)
      }
    }
    var others: [KnownConfiguration] = []
    for (known, relation) in zip(remembered, relations) {
      if known.policies == nil { judgement.isUnreadable = true }
      judgement.foreign += relation.foreign
      judgement.renamed += relation.renamed
      judgement.changes += relation.changes
      if relation.follows { judgement.followsNone = false } else { others.append(known) }
    }
    judgement.changes = ReloadPlan.listed(judgement.changes)
    // A known configuration stays in its place, so that nodes with the same configuration write the same text.
    guard others.count + 1 != register.configurations.count || isNew else { return judgement }
    register.configurations = (others + [own]).suffix(limit)
    judgement.text = register.text
    return judgement
  }

  private var text: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(self) else {
      preconditionFailure("NamespaceRegister: not encodable")
    }
    return String(decoding: data, as: UTF8.self)
  }
}

/// The relation of a configuration to one that the namespace remembers.
private struct Relation {
  /// Whether the configuration succeeds the other.
  private(set) var follows = false
  private(set) var changes: [ReloadPlan.Reason] = []
  private(set) var foreign: [String] = []
  private(set) var renamed: [String] = []

  /// - Parameter seemsToFollow: Whether the configuration succeeds the other even where nothing proves it.
  init(
    _ own: KnownConfiguration, to known: KnownConfiguration, isShared: Bool, seemsToFollow: Bool = false
  ) {
    guard let old = known.policies, let new = own.policies else { return }
    let here = own.allUpstreams
    let common = Set(known.upstreams.keys).intersection(here.keys)
    let comparison = IdentityComparison(from: old, to: new)
    let renamed = known.upstreams.filter { name, address in
      guard here[name] == nil, here.values.contains(address) else { return false }
      guard Self.isLocal(address) else { return true }
      return comparison.changes { $0.upstream.name == name }.contains { change in
        guard case .identified(let index, _) = change.end else { return false }
        return here[new[index].upstream.name] == address
      }
    }
    let names = isShared ? common.union(renamed.keys) : Set(known.upstreams.keys)
    let counts: (RoutePolicy) -> Bool = { names.contains($0.upstream.name) }
    let stays = common.contains { name in
      known.upstreams[name] == here[name] && !Self.isLocal(here[name] ?? "")
    }
    follows = !isShared || stays || seemsToFollow || comparison.overlaps(where: counts)
    let taken = comparison.changes(where: { !counts($0) }).filter { $0.end != .unmatched }
    if follows {
      changes = IdentityChange.reasons(
        for: comparison.changes(where: counts) + taken, from: old, to: new,
        since: "in the configuration that used this namespace before")
      if isShared, renamed.contains(where: { Self.isLocal($0.value) }) { changes.append(Self.sameRoutes) }
      if seemsToFollow, !changes.isEmpty { changes.append(Self.sameUpstream) }
      if known.idSecret != own.idSecret, !known.protectsNothing { changes.append(Self.secret) }
      if let before = known.proxies, let now = own.proxies, before != now { changes.append(Self.addresses) }
      if own.renamesAuthorities(of: known) { changes.append(Self.authorities) }
    }
    if isShared { foreign = Self.foreign(own, known, common, follows: follows) }
    if !follows {
      let sentences = taken.compactMap { change -> String? in
        guard case .identified(let index, _) = change.end else { return nil }
        let (there, here) = (old[change.route], new[index])
        return
          "route \(here.name) for upstream \(here.upstream.name) here, and route \(there.name) for upstream "
          + "\(there.upstream.name) there"
      }
      self.renamed = ReloadPlan.listed(sentences)
    }
  }

  private static func foreign(
    _ own: KnownConfiguration, _ known: KnownConfiguration, _ common: Set<String>, follows: Bool
  ) -> [String] {
    common.sorted().compactMap { name in
      guard let here = own.allUpstreams[name], let there = known.upstreams[name], !follows || here != there
      else {
        return nil
      }
      let places = here == there ? "at \(here) in both" : "at \(there) there and at \(here) here"
      let names = ReloadPlan.listed(known.routes.filter { $0.upstream == name }.map(\.name))
      let routes = names.joined(separator: ", ")
      return "upstream \(name) is \(places), and its routes there are \(routes)"
    }
  }

  private static let sameRoutes = ReloadPlan.Reason(
    "store.namespace",
    "remembers requests of these routes for an upstream of another name at the same address of its own machine: if "
      + "this is another service, give it a namespace of its own; if the upstream was renamed, write the old name, which "
      + "is part of every record's identity")

  private static let sameUpstream = ReloadPlan.Reason(
    "store.namespace",
    "remembers an upstream of the same name at the same address of its own machine: if this is another service, give "
      + "it a namespace of its own")

  private static let addresses = ReloadPlan.Reason(
    "trusted_proxies",
    "or a listener's proxy_protocol is another than in the configuration that used this namespace before, so that a "
      + "caller's address may be another one and a retry run again; " + IdentityChange.remedy)

  private static let authorities = ReloadPlan.Reason(
    "listen",
    "gives a client_ca another client_ca_name than the configuration that used this namespace before, so that its "
      + "clients are other callers and a retry would run again; " + IdentityChange.remedy)

  private static let secret = ReloadPlan.Reason(
    "store.id_secret_file",
    "holds another secret than the configuration that used this namespace before, so that a retry would find no record "
      + "and run again; " + IdentityChange.remedy)

  /// Whether the address does not identify a service, because it belongs to one machine.
  private static func isLocal(_ address: String) -> Bool {
    ["unix:", "127.", "localhost:", "[::1]:"].contains { address.hasPrefix($0) }
  }
}

import FoundationEssentials
import Idempotency

/// The configuration that a namespace has been used with, as one text in its store. Performs no I/O.
///
/// Another configuration takes its place only if all requests of before find their records, or if its file accepts the
/// change. The digest of each accepted change is part of the next one's: a line that stays in a file accepts no second
/// change. Earlier versions let several configurations share a namespace; each may go on until one is accepted in the
/// place of all.
public struct NamespaceRegister: Codable, Sendable {
  public struct Judgement: Hashable, Sendable {
    /// The text of the namespace once the configuration is in use; `nil` if it stays the same.
    public var text: String?
    /// The change that has to be accepted before; `nil` if there is none.
    public var change: ConfigurationChange?
    /// The upstreams that have another address in the namespace's memory, in one sentence each.
    public var movedUpstreams: [String] = []
  }

  private static let version = 1

  private var version = Self.version
  private var configurations: [KnownConfiguration]
  /// The digest of the latest change that was accepted; `nil` if there was none, and in earlier versions.
  private var accepted: String?

  private init(_ configurations: [KnownConfiguration], accepted: String? = nil) {
    self.configurations = configurations
    self.accepted = accepted
  }

  /// Reads a namespace's text; `nil` for a text of another version.
  private init?(_ text: String) {
    guard let register = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)),
      register.version == Self.version
    else { return nil }
    self = register
  }

  /// Compares a configuration with those in the namespace's text, which is `nil` for a namespace without one.
  public static func judge(_ own: KnownConfiguration, in text: String?) -> Judgement {
    guard let text else { return Judgement(text: Self([own]).text) }
    guard let register = Self(text) else {
      let digest = ConfigurationChange.Digest(.sha256(of: Array("\(text) \(own.digest)".utf8)))
      return accepting(ConfigurationChange(reasons: [unreadable], digest: digest), to: own)
    }
    let moved = register.configurations.flatMap { $0.movedUpstreams(in: own) }
    guard !register.configurations.contains(own) else { return Judgement(movedUpstreams: moved) }
    let remembered = register.configurations.filter { !$0.protectsNothing }.map {
      (configuration: $0, change: $0.change(to: own, after: register.accepted))
    }
    let changes = remembered.compactMap(\.change)
    if changes.isEmpty || changes.count < remembered.count {
      let others = remembered.filter { $0.change != nil }.map(\.configuration)
      return Judgement(text: Self(others + [own], accepted: register.accepted).text, movedUpstreams: moved)
    }
    var change = ConfigurationChange.all(changes)
    change.reasons.append(otherService)
    return accepting(change, to: own, movedUpstreams: moved)
  }

  /// The judgement on a configuration that is alone in the namespace once its change is accepted.
  private static func accepting(
    _ change: ConfigurationChange, to own: KnownConfiguration, movedUpstreams: [String] = []
  ) -> Judgement {
    let text = Self([own], accepted: change.digest.text).text
    return Judgement(text: text, change: change, movedUpstreams: movedUpstreams)
  }

  private var text: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(self) else {
      preconditionFailure("NamespaceRegister: not encodable")
    }
    return String(decoding: data, as: UTF8.self)
  }

  private static let unreadable = ReloadPlan.Reason(
    "store.namespace",
    "remembers a configuration that this version cannot read, as a newer one may write it, so that nothing can be "
      + "compared; start that version")

  private static let otherService = ReloadPlan.Reason(
    "store.namespace", "has one configuration; if this is another service, give it a namespace of its own")
}

/// A change of configuration by which requests may find other records than before.
public struct ConfigurationChange: Hashable, Sendable {
  /// A short digest of one change, which `allow_identity_change` names: ten letters from `a` to `p`, so that no format
  /// of configurations reads it as a number.
  public struct Digest: Hashable, Sendable, CustomStringConvertible {
    public let text: String

    init(_ digest: Digest256) {
      text = String(
        decoding: digest.hexText.utf8.prefix(Self.length).map { $0 < 0x61 ? $0 + 0x31 : $0 + 0x0A },
        as: UTF8.self)
    }

    /// Parses the text of a digest; `nil` for any other text.
    public init?(_ text: String) {
      let letters = UInt8(ascii: "a")...UInt8(ascii: "p")
      guard text.utf8.count == Self.length, text.utf8.allSatisfy(letters.contains) else { return nil }
      self.text = text
    }

    private static let length = 10

    public var description: String { text }
  }

  /// The reasons against the change, at least one: one for each affected route, lost protection first, then others.
  var reasons: [ReloadPlan.Reason]
  public var digest: Digest

  /// The reasons for a person, and at the end the member that accepts the change.
  public var refusal: [ReloadPlan.Reason] {
    ReloadPlan.listed(reasons) + [
      ReloadPlan.Reason(
        Settings.acceptance,
        "\(digest) in the file accepts this very change: records of before are lost then, and their retries run again"
      )
    ]
  }

  /// - Parameter changes: At least one change.
  static func all(_ changes: [ConfigurationChange]) -> ConfigurationChange {
    guard changes.count > 1 else { return changes[0] }
    var reasons: [ReloadPlan.Reason] = []
    for reason in changes.flatMap(\.reasons) where !reasons.contains(reason) { reasons.append(reason) }
    let digests = changes.map(\.digest.text).joined(separator: " ")
    return ConfigurationChange(reasons: reasons, digest: .init(.sha256(of: Array(digests.utf8))))
  }
}

extension IdentityChange {
  /// The reasons against changes, one for each old route. Those by which requests lose their protection come first.
  static func reasons(for changes: [IdentityChange], to new: [RouteIdentity]) -> [ReloadPlan.Reason] {
    (changes.filter(\.losesProtection) + changes.filter { !$0.losesProtection }).map { $0.reason(to: new) }
  }

  private var losesProtection: Bool {
    if case .identified = cause { false } else { true }
  }

  private static let advice = "; write it behind"

  private func reason(to new: [RouteIdentity]) -> ReloadPlan.Reason {
    let subject = "\(route.name) before (\(route.summary))"
    switch cause {
    case .identified(let index, let members):
      let isOwn = new[index].name == route.name
      let requests = isOwn ? "" : ", whose requests it may take"
      let others = members.count > 1 ? ", as \(members.dropFirst().joined(separator: " and ")) is" : ""
      return ReloadPlan.Reason(
        "routes[\(index)].\(members[0])",
        "is another than in \(subject)\(requests)\(others), so that a retry would find no record and run again"
          + (isOwn ? "" : Self.advice))
    case .unprotected(let index):
      let isOwn = new[index].name == route.name
      return ReloadPlan.Reason(
        "routes[\(index)].\(isOwn ? new[index].isShadowed ? "shadow" : "idempotency" : "match")",
        "may take requests that \(subject) protected, and leaves them unprotected, so that a retry would run again"
          + (isOwn ? "" : Self.advice))
    case .unmatched:
      let index = new.firstIndex { $0.name == route.name }
      return ReloadPlan.Reason(
        index.map { "routes[\($0)].match" } ?? "routes",
        "no route has the match of \(subject), so that a retry may find no record and run again; keep that route, and "
          + "write others behind it")
    }
  }
}

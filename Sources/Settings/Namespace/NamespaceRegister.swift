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

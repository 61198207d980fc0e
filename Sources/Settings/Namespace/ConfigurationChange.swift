import Idempotency

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

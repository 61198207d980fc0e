import Idempotency
import Wire

/// The members of one kind of section, in the order in which they are read, shown and described. All that is done with
/// settings goes by it, so that a new member is one entry.
struct Schema<Root: Sendable>: Sendable {
  /// A section that sets nothing.
  let defaults: Root
  private(set) var members: [Member<Root>]
  /// The members of earlier versions, each with the reason for which it is refused.
  private let removed: [String: String]
  /// The reason why a section does not take one of the members; `nil` if it does.
  private let misplaced: @Sendable (Root, Member<Root>) -> String?
  /// The members by which that is decided. With an error in one of them, no other is reported as misplaced or missing.
  private let deciding: [String]
  private let check: @Sendable (inout Root, Section) -> Void

  /// - Parameter check: The rules between members, which runs after all of them are read.
  init(
    _ defaults: Root, removed: [String: String] = [:], deciding: [String] = [],
    misplaced: @escaping @Sendable (Root, Member<Root>) -> String? = { _, _ in nil },
    check: @escaping @Sendable (inout Root, Section) -> Void = { _, _ in },
    @MemberList<Root> _ members: () -> [Member<Root>]
  ) {
    self.defaults = defaults
    self.members = members()
    self.removed = removed
    self.deciding = deciding
    self.misplaced = misplaced
    self.check = check
  }

  func read(_ section: Section, into root: inout Root) {
    for member in members where member.isReadable {
      let isDecided = members.allSatisfy { other in
        !deciding.contains(other.name) || section.isSound(other.name) || misplaced(root, other) != nil
      }
      if let reason = misplaced(root, member) {
        if isDecided { section.refuse([member.name], reason) } else { section.declare([member.name]) }
      } else if let value = section.member(member.name) {
        member.read(value, into: &root)
      } else if let missing = member.missing, isDecided {
        section.refuseMissing(member.name, missing)
      }
      member.finish(section, &root)
    }
    for (name, reason) in removed where section[name] != nil { section.refuse([name], reason) }
    check(&root, section)
  }

  func shown(_ root: Root) -> Shown { .members(shownMembers(root)) }

  func shownMembers(_ root: Root) -> [Shown.Member] {
    members(in: root).map { Shown.Member($0.name, $0.shown(root)) }
  }

  /// The paths of the members that differ and cannot change before a restart.
  func changes(from old: Root, to new: Root) -> [String] {
    members(in: old).filter { misplaced(new, $0) == nil }.flatMap { $0.changes(from: old, to: new) }
  }

  private func members(in root: Root) -> [Member<Root>] {
    members.filter { misplaced(root, $0) == nil }
  }

  /// Takes what may change live from another document.
  func adopt(_ other: Root, into root: inout Root) {
    for member in members { member.adopt(other, into: &root) }
  }

  /// The names of the members that a file may have.
  var names: [String] { members.filter(\.isReadable).map(\.name) }

  /// The same schema, of which no member changes live.
  var restart: Schema {
    var schema = self
    schema.members = members.map { $0.isReadable ? $0.restart : $0 }
    return schema
  }
}

/// A list of members, one a line. Each is type-checked by itself.
@resultBuilder
enum MemberList<Root: Sendable> {
  static func buildExpression(_ member: Member<Root>) -> Member<Root> { member }
  static func buildBlock(_ members: Member<Root>...) -> [Member<Root>] { members }
}

/// One member in the reference of all settings.
struct ReferenceRow: Sendable {
  /// The name, with that of its section: `tls.key`.
  var name: String
  var values: String
  var standard: String
  var reload: Reload
  /// The case in which requests find their records by the member; `nil` for never, empty for always.
  var identity: String?
  var help: String

  func within(_ section: String) -> ReferenceRow {
    var row = self
    row.name = "\(section).\(name)"
    return row
  }

  var markdown: String {
    let identity = identity.map { $0.isEmpty ? ", identity" : ", identity \($0)" }
    let cells = ["`\(name)`", values, standard, reload.rawValue + (identity ?? ""), help]
    return "| " + cells.map { $0.replacing("|", with: "\\|") }.joined(separator: " | ") + " |"
  }
}

extension Schema {
  /// The members for the reference, those of sections by their dotted names.
  var rows: [ReferenceRow] {
    members.filter(\.isReadable).flatMap { ($0.help.isEmpty ? [] : [row($0)]) + $0.parts }
  }

  fileprivate func row(_ member: Member<Root>) -> ReferenceRow {
    ReferenceRow(
      name: member.name, values: member.values,
      standard: member.standard ?? member.shown(defaults).map { "`\($0.plain)`" } ?? "none",
      reload: member.reload, identity: member.identity, help: member.help)
  }
}

/// The reference of all settings: a page that is made from the schema.
public enum SettingsReference {
  /// The page, in Markdown.
  public static var page: String {
    let members = Settings.schema.members.filter(\.isReadable)
    let top = members.filter { $0.parts.isEmpty }.map(Settings.schema.row)
    var blocks = [introduction, "## The top of the file", table(top)]
    for member in members where !member.parts.isEmpty {
      blocks += ["## `\(member.name)`", member.help, table(member.parts)].filter { !$0.isEmpty }
    }
    return blocks.joined(separator: "\n\n") + "\n"
  }

  private static let introduction = """
    # Semel: the settings

    Every member of the file, with its values, its default and the effect of a reload. *Live* members change by SIGHUP,
    the others by a *restart*. Requests find their records by an *identity*: another value needs
    `allow_identity_change`. Durations are `250ms`, `30s`, `5m`, `24h`, `30d`; sizes `0B`, `64KiB`, `1MiB`, `1GiB`.

    [Operation](OPERATION.md#configuration) states how a file is read, and the rules that follow from single members.
    [`config.yaml`](../../config.yaml) shows all members in their places. This page is made from the schema in
    `Sources/Settings`, and a test holds it to that.
    """

  private static func table(_ rows: [ReferenceRow]) -> String {
    (["| member | values | default | reload | |", "|---|---|---|---|---|"] + rows.map(\.markdown))
      .joined(separator: "\n")
  }
}

/// A part of the configuration as shown to an operator: JSON with the members, words and units of the file. Each member
/// of a schema states what is shown of it, so that nothing secret is included by accident.
enum Shown {
  case text(String)
  case number(Int)
  case flag(Bool)
  case list([Shown])
  /// Members in the order of the schema. A member that is `nil` is not set and left out.
  case members([Member])

  struct Member {
    let name: String
    let value: Shown?

    init(_ name: String, _ value: Shown?) {
      self.name = name
      self.value = value
    }
  }

  static func span(_ span: Milliseconds) -> Shown { .text(span.text) }
  static func size(_ bytes: Int) -> Shown { .text(ByteSize.text(bytes)) }
  static func word(_ choice: some RawRepresentable<String>) -> Shown { .text(choice.rawValue) }
  static func texts(_ texts: [String]) -> Shown { .list(texts.map(Shown.text)) }
  /// A path or URL, in whose query only names and the placeholder of a request's id are shown: the rest may be secret.
  static func target(_ text: String) -> Shown {
    guard let mark = text.firstIndex(of: "?") else { return .text(text) }
    let query = text[text.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false)
    let pairs = query.map { pair -> String in
      guard let equals = pair.firstIndex(of: "=") else { return redacted(pair) }
      return String(pair[...equals]) + redacted(pair[pair.index(after: equals)...])
    }
    return .text(String(text[...mark]) + pairs.joined(separator: "&"))
  }

  /// The text with a placeholder for each part of it that is not the one of a request's id.
  private static func redacted(_ text: Substring) -> String {
    text.split(separator: ReconcilePolicy.placeholder, omittingEmptySubsequences: false)
      .map { $0.isEmpty ? "" : Secret(String($0)).description }.joined(separator: ReconcilePolicy.placeholder)
  }

  /// A placeholder, which reveals only that the secret is set.
  static func secret(_ secret: Secret) -> Shown { .text(secret.description) }
}

extension Shown {
  /// A default in the reference: as in a file.
  var plain: String {
    switch self {
    case .text(let text): text
    case .list(let items): "[" + items.map(\.plain).joined(separator: ", ") + "]"
    default: json
    }
  }

  var json: String {
    switch self {
    case .text(let text): text.jsonString
    case .number(let number): "\(number)"
    case .flag(let flag): "\(flag)"
    case .list(let items): "[" + items.map(\.json).joined(separator: ",") + "]"
    case .members(let members):
      "{"
        + members.compactMap { member in member.value.map { member.name.jsonString + ":" + $0.json } }
        .joined(separator: ",") + "}"
    }
  }
}

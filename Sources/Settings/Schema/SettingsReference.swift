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

/// The page of the operators' acts: who, when, and for which reason.
struct AuditPage {
  let console: Console

  var content: View {
    let entries = console.recordAdmin.trail.latest.map { entry in
      let state = entry.refused.map { "refused: \($0)" } ?? entry.failed.map { "failed: \($0)" }
      let details = entry.details.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
      return view([
        "time": Words.date(entry.time), "action": entry.action, "record": entry.record,
        "short_id": entry.record.map(Words.short),
        "from": entry.from, "reason_text": entry.reason ?? "–", "warning": entry.warning,
        "details": ([state].compactMap(\.self) + details).joined(separator: ", "),
      ])
    }
    return view(["entries": entries, "has_entries": !entries.isEmpty])
  }
}

/// The configuration in use, without its secrets, and the latest reload.
struct ConfigurationPage {
  let surroundings: ConsoleSurroundings

  func content() async -> View {
    let status = await surroundings.configuration()
    return view([
      "refusal": status?.refusal != nil, "refused_at": status?.refusal?.at,
      "reasons": status?.refusal?.reasons,
      "facts": [
        fact("Digest", status?.digest ?? "none: there is no file", code: true),
        fact("Loaded", status?.loadedAt),
        fact("Refused digest", status?.refusal?.digest, code: true),
      ].compactMap(\.self),
      "document": await surroundings.settings(),
    ])
  }
}

import Settings

/// The beginning of a minimal file, in one line: tests write theirs from line 2 on.
let upstream = "upstreams: {backend: {url: \"http://127.0.0.1:9000\"}}\n"

/// The forms of a caller's part in error messages.
let callerForms =
  "header:NAME, cookie:NAME, query:NAME, json:/pointer, jwt:CLAIM, basic:user, sigv4:access_key, client_certificate "
  + "or address; header?:NAME for one that may be missing; or alternatives such as \"jwt:sub | cookie:sid\""

/// The settings of a file that has to be right.
func load(_ text: String, environment: [String: String] = [:]) throws -> Settings {
  try Settings.load(text: text, file: "semel.yaml", environment: environment).get()
}

/// All that is wrong with a file, a line each, without the file's name.
func issues(_ text: String, environment: [String: String] = [:]) -> [String] {
  switch Settings.load(text: text, file: "f", environment: environment) {
  case .success: []
  case .failure(let errors): errors.issues.map { String($0.description.dropFirst(2)) }
  }
}

/// A file with one route of these members.
func route(_ members: String) -> String {
  upstream + "routes: [{name: r, caller: {parts: [address]}, \(members)}]\n"
}

/// The verdict on a reload: that of the plan, and then that of a namespace that remembers the old configuration.
func reloadVerdict(from old: Settings, to new: Settings) -> ReloadPlan {
  let plan = ReloadPlan(from: old, to: new)
  let text = NamespaceRegister.judge(KnownConfiguration(old), in: nil).text
  guard plan == .apply, let change = NamespaceRegister.judge(KnownConfiguration(new), in: text).change,
    change.digest != new.acceptedChange
  else { return plan }
  return .refuse(change.refusal)
}

extension Settings {
  /// The warnings but for the one that nothing is protected, which many tests leave out as beside their point.
  var ownWarnings: [SettingsIssue] {
    warnings.filter { !$0.description.contains("no route protects anything") }
  }
}

extension NamespaceRegister.Judgement {
  /// The members by which a comparable configuration would lose records: the reasons but for the last two, which name
  /// the remedies.
  var members: [String] { change?.refusal.dropLast(2).map(\.member) ?? [] }

  /// Whether the configuration is used as it is remembered.
  var changesNothing: Bool { text == nil && change == nil && movedUpstreams.isEmpty }
}

import Idempotency
import Wire

/// The members of `defaults`, as routes inherit them.
struct RouteDefaults {
  /// All of them, for routes without a profile of their own.
  private(set) var draft = RouteDraft()
  /// Those that are written out, for routes with a profile of their own: a member of the profile of `defaults` would
  /// outlast the change to another contract.
  private(set) var unprofiled = RouteDraft()

  mutating func read(_ section: Section) {
    RouteDraft.schema.read(section, into: &draft)
    RouteDraft.schema.read(section.copy(without: "profile"), into: &unprofiled)
  }
}

/// A route while it is read: the members of `defaults`, overridden by those of the route itself.
struct RouteDraft {
  /// The policy. Its name, match and upstream are set once they are known; the draft of `defaults` has none.
  var policy = RoutePolicy(
    name: "", match: RouteMatch(), upstream: UpstreamSettings(name: "", address: .unix(path: "")))
  var upstream: String?
  var patterns = OutcomePatterns()
  /// Whether `remember` is given. Otherwise it follows `retention`.
  var hasRemember = false
  /// Whether `key.from` is given, by the route or by `defaults`.
  var hasKeySources = false
  /// Whether all clients are one caller, so that no parts are needed.
  var sharesCaller = false
  /// Whether keys are optional by the profile alone.
  var isOptionalByProfile = false
  /// Whether released records are forgotten by the profile alone.
  var forgetsByProfile = false

  init() {}

  init(_ policy: RoutePolicy) {
    self.policy = policy
    upstream = policy.upstream.name
    sharesCaller = policy.caller?.isShared ?? false
  }
}

// The members of sections that the policy holds in another form.
extension RouteDraft {
  struct Endpoint: Hashable {
    var scope = RoutePolicy.Endpoint.path
    var host = RoutePolicy.EndpointHost.own
  }

  struct Caller: Hashable {
    var isShared = false
    var policy = CallerPolicy(parts: [])
  }

  struct Fingerprint: Hashable {
    var body = Recipe.Body.auto
    var headers: [String] = []
    var ignore: [PayloadPart] = []
    var only: [PayloadPart] = []
    var explain = false
  }

  var endpoint: Endpoint {
    get { Endpoint(scope: policy.endpoint, host: policy.endpointHost) }
    set { (policy.endpoint, policy.endpointHost) = (newValue.scope, newValue.host) }
  }

  var caller: Caller? {
    get { policy.caller.map { Caller(isShared: sharesCaller, policy: $0) } }
    set { (sharesCaller, policy.caller) = (newValue?.isShared ?? false, newValue?.policy) }
  }

  var fingerprint: Fingerprint {
    get {
      let recipe = policy.recipe
      return Fingerprint(
        body: recipe.body, headers: recipe.headers, ignore: recipe.ignore, only: recipe.only,
        explain: policy.explainsMismatch)
    }
    set {
      policy.recipe = Recipe(
        body: newValue.body, headers: newValue.headers, ignore: newValue.ignore, only: newValue.only)
      policy.explainsMismatch = newValue.explain
    }
  }

  mutating func adopt(_ profile: RouteProfile) {
    policy.adopt(profile)
    // Its sources take the place of those of `defaults`.
    hasKeySources = false
    var preset = Self().policy
    preset.adopt(profile)
    isOptionalByProfile = preset.idempotency == .optional
    forgetsByProfile = preset.released == .forget
    patterns.adopt(preset.outcomes)
    if profile == .webhook { sharesCaller = true }
  }

  mutating func adoptRetention(_ section: Section) {
    hasRemember = hasRemember || section["remember"] != nil
    if !hasRemember { policy.remember = Self.remember(after: policy.retention) }
    guard section.isSound("retention", "remember"), policy.remember < policy.retention else { return }
    let (remember, retention) = (policy.remember.text, policy.retention.text)
    if let member = section["remember"] {
      member.refuse("must not be shorter than retention: \(remember) against \(retention)")
    } else if let member = section["retention"] {
      member.refuse("must not be longer than remember: \(retention) against \(remember)")
    } else if let member = section["profile"], !Self.hasRefusedRetention(section.reader) {
      member.refuse(
        "sets retention: \(retention), which is longer than remember: \(remember) of defaults: give the route a "
          + "remember of at least \(retention)")
    }
    // A section with none of these members inherits the contradiction from `defaults`, which are refused.
  }

  private static func hasRefusedRetention(_ reader: Reader) -> Bool {
    ["retention", "remember"].contains { reader.hasRefused("defaults.\($0)") }
  }

  /// The value of `remember` if it is not given: twice the retention, and at least a day.
  private static func remember(after retention: Milliseconds) -> Milliseconds {
    let twice = retention > Milliseconds(TimeSpan.max.count / 2) ? TimeSpan.max : retention + retention
    return max(.seconds(24 * 3600), twice)
  }

  func checkSlashes(_ section: Section) {
    guard policy.encodedSlashes == .keep, policy.idempotency == .off,
      section.isSound("encoded_slashes", "idempotency")
    else { return }
    section["encoded_slashes"]?.warn(
      "has no effect with idempotency: off: a path passes as it is, unless a protected route could be meant")
  }

  func checkShadow(_ section: Section) {
    guard policy.shadow, section.isSound("shadow", "idempotency"), let member = section["shadow"] else {
      return
    }
    if policy.idempotency == .off {
      member.refuse("has no effect with idempotency: off, which keeps no records; take one of them out")
    } else {
      member.warn(
        "leaves requests unprotected: Semel forwards each of them, and only counts what it would do")
    }
  }

  /// Refuses rules that no response of the route can meet, and a number of attempts that is never reached.
  mutating func checkOutcomes(_ section: Section) {
    // A number of attempts counts for more than what the profile sets.
    if forgetsByProfile, policy.maxAttempts != nil { policy.released = .keep }
    guard policy.isProtected else { return }
    let readsBodies = policy.outcomes.rules?.list.contains { !$0.members.isEmpty } ?? false
    if policy.stream, readsBodies, section.isSound("outcomes", "stream") {
      let place = section["outcomes"] ?? section["stream"] ?? section.value
      place.refuse(
        "combines stream: true with a rule that reads json, which no response meets that goes to the client as it "
          + "comes; take one of them out")
    }
    if policy.released == .forget, policy.maxAttempts != nil, section.isSound("released", "max_attempts") {
      let place = section["released"] ?? section["max_attempts"] ?? section.value
      place.refuse(
        "combines max_attempts with released: forget, which forgets the attempts, so that the number is never "
          + "reached; take one of them out")
    }
  }
}

extension RouteDraft.Fingerprint {
  mutating func check(_ section: Section) {
    if !ignore.isEmpty, !only.isEmpty { choose(section) }
    // An inherited list has no effect with another body, and is no error there.
    for (name, parts) in [("ignore", ignore), ("only", only)] {
      guard let member = section[name], section.isSound("body", name) else { continue }
      if body != .auto, parts.contains(where: \.isInBody) {
        member.refuse("is for body: auto alone; take it out, or write body: auto")
      } else if let (first, second) = PayloadPart.clashing(parts) {
        member.refuse(
          "leads through one array by * and by an index (\(first.text) and \(second.text)); write * in both, or "
            + "indices alone")
      }
    }
    guard explain, body != .auto, section.isSound("body", "explain") else { return }
    section["explain"]?.refuse(
      "needs body: auto, which alone compares JSON by members; set that, or remove explain")
  }

  /// Takes one of the two lists: that of the section, in place of an inherited one.
  private mutating func choose(_ section: Section) {
    if section["only"] == nil {
      only = []
    } else if section["ignore"] == nil {
      ignore = []
    } else if section.isSound("ignore", "only") {
      section["only"]?.refuse(
        "cannot be combined with ignore, since what only does not name is left out already; take one of them out"
      )
    }
  }
}

extension RouteDraft.Caller {
  mutating func readParts(_ member: Value) {
    guard let list = member.list("a list such as [header:Authorization]", of: "a part", CallerPart.read)
    else {
      return
    }
    if list.isEmpty, !member.hasFault { member.refuse("must name at least one part: \(CallerPart.allowed)") }
    if let part = list.first, list.allSatisfy(\.isOptional), !member.hasFault {
      member.refuse(
        "has optional parts alone, so that all clients without them would be one caller; add one that every request "
          + "has, such as header:Authorization, or write \(part.alternatives[0].text)")
    }
    let names = Set(list.filter(\.isOptional).flatMap(\.alternatives))
    if let part = list.first(where: { !$0.isOptional && !names.isDisjoint(with: $0.alternatives) }),
      !member.hasFault
    {
      member.refuse("has \(part.text) beside the same part as an optional one; take one of them out")
    }
    policy.parts = list
    // The callers that may lack a part belong to the parts: what `defaults` allows for its own does not reach these.
    policy.anonymous = .refuse
  }

  /// Shares the caller, or takes back that `defaults` share theirs.
  mutating func adoptShared(_ section: Section) {
    if section["shared"] == nil, section["parts"] != nil { isShared = false }
    if isShared { policy = CallerPolicy(parts: []) }
  }

  func misplaced(_ name: String) -> String? {
    isShared && name != "shared"
      ? "has no effect with shared: true, which makes all clients one caller; take one of them out" : nil
  }

  func check(_ section: Section) {
    guard let member = section["schemes"], !policy.schemes.isEmpty, !policy.parts.isEmpty,
      section.isSound("parts", "schemes"), !policy.alternatives.contains(.header("authorization"))
    else { return }
    member.refuse("is for the part header:Authorization alone; add that to parts, or take schemes out")
  }
}

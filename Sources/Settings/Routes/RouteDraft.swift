import Idempotency
import Wire

/// The members of `defaults`, as routes inherit them.
struct RouteDefaults {
  /// All of them, for routes without a profile of their own.
  private(set) var draft = RouteDraft()
  /// Those that are written out, without those that the profile of `defaults` sets, for routes with one of their own. A
  /// member of that profile would outlast the change to another contract: that all clients are one caller, or that the
  /// body does not count.
  private(set) var unprofiled = RouteDraft()

  mutating func read(_ section: Section) {
    draft.read(section)
    unprofiled.read(section.copy(without: "profile"))
  }
}

/// A route while it is read: the members of `defaults`, overridden by those of the route itself.
struct RouteDraft {
  /// The policy. Its name, match and upstream are set once they are known; the draft of `defaults` has none.
  var policy = RoutePolicy(
    name: "", match: RouteMatch(), upstream: UpstreamSettings(name: "", address: .unix(path: "")))
  var upstream: String?
  var patterns = OutcomePatterns()
  /// Whether `remember` is given. Otherwise it follows a longer `retention`.
  var hasRemember = false
  /// Whether `key.from` is given, by the route or by `defaults`.
  var hasKeySources = false
  /// Whether all clients are one caller, so that no parts are needed.
  var sharesCaller = false
  /// Whether keys are optional by the profile alone.
  var isOptionalByProfile = false

  /// Reads all members except `match` and `name`.
  mutating func read(_ section: Section) {
    if let name = section.member("upstream")?.parsed("the name of an upstream", Identifier.parse) {
      upstream = name
    }
    // First, so that every member of the same section overrides it.
    readProfile(section)
    readIdentity(section)
    section.choice("duplicates", into: &policy.duplicates)
    section.duration("wait_timeout", into: &policy.waitTimeout)
    section.integer("max_waiters", into: &policy.maxWaiters, in: 1...100_000)
    // A renewal has a third of the lease; with less than a second, a busy machine would lose claims.
    section.duration("lease", into: &policy.lease, atLeast: .seconds(1))
    readRetention(section)
    section.section("outcomes") { patterns.read($0) }
    section.choice("behind", into: &policy.behind)
    section.choice("on_unknown", into: &policy.onUnknown)
    section.limit("max_attempts", into: &policy.maxAttempts, atMost: 1_000_000)
    section.choice("on_store_failure", into: &policy.onStoreFailure)
    // One buffer holds a body, and none takes more than 4 GiB.
    section.size("max_request_body", into: &policy.maxRequestBody, in: 0...2 << 30)
    policy.recipe = policy.recipe.limited(to: policy.maxRequestBody)
    section.size("max_response_body", into: &policy.maxResponseBody, in: 0...2 << 30)
    readResponseTimeout(section)
    section.choice("set_cookie", into: &policy.setCookie)
    readBatch(section)
    section.flag("stream", into: &policy.stream)
    if let cors = section.member("cors").map({ CORSPolicy.read($0) }) { policy.cors = cors }
    readShadow(section)
    policy.outcomes = patterns.table
    readRetries(section)
    readReconcile(section)
  }

  /// Reads the members by which requests find their records.
  private mutating func readIdentity(_ section: Section) {
    section.choice("idempotency", into: &policy.idempotency)
    if section["idempotency"] != nil { isOptionalByProfile = false }
    section.section("key") { key in
      policy.key.read(key)
      if key["from"] != nil { hasKeySources = true }
    }
    section.section("caller") { readCaller($0) }
    section.choice("endpoint", into: &policy.endpoint)
    section.choice("spelling", into: &policy.spelling)
    section.choice("content_coding", into: &policy.contentCoding)
    section.section("fingerprint") { readFingerprint($0) }
    readMismatchStatus(section)
  }

  private mutating func readShadow(_ section: Section) {
    section.flag("shadow", into: &policy.shadow)
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

  private mutating func readProfile(_ section: Section) {
    let words = RouteProfile.allCases.map(\.rawValue).asAlternatives
    let profile = section.member("profile")?.parsed(words) { text throws(Refusal) in
      guard let profile = RouteProfile(rawValue: text) else { throw Refusal("must be \(words)") }
      return profile
    }
    guard let profile else { return }
    policy.adopt(profile)
    // Its sources take the place of those of `defaults`.
    hasKeySources = false
    var preset = Self().policy
    preset.adopt(profile)
    isOptionalByProfile = preset.idempotency == .optional
    patterns.adopt(preset.outcomes)
    if profile == .webhook { sharesCaller = true }
  }

  private mutating func readCaller(_ section: Section) {
    var caller = policy.caller ?? CallerPolicy(parts: [])
    section.flag("shared", into: &sharesCaller)
    if section["shared"] == nil, section["parts"] != nil { sharesCaller = false }
    if sharesCaller {
      section.refuse(
        ["parts", "anonymous", "schemes"],
        "has no effect with shared: true, which makes all clients one caller; take one of them out")
      policy.caller = CallerPolicy(parts: [])
      return
    }
    if let parts = section.member("parts"),
      let list = parts.list("a list such as [header:Authorization]", of: "a part", CallerPart.read)
    {
      if list.isEmpty, !parts.hasFault { parts.refuse("must name at least one part: \(CallerPart.allowed)") }
      caller.parts = list
      // The callers that may lack a part belong to the parts: what `defaults` allows for its own does not reach these.
      caller.anonymous = .refuse
    }
    section.choice("anonymous", into: &caller.anonymous)
    let schemes = section.member("schemes")?
      .list("a list such as [GNAP]", of: "a scheme") { text throws(Refusal) in try Token.scheme(text) }
    if let schemes { caller.schemes = schemes }
    if let member = section["schemes"], !caller.schemes.isEmpty, !caller.parts.isEmpty,
      section.isSound("parts", "schemes"), !caller.parts.contains(.header("authorization"))
    {
      member.refuse("is for the part header:Authorization alone; add that to parts, or take schemes out")
    }
    policy.caller = caller
  }

  private mutating func readFingerprint(_ section: Section) {
    policy.recipe = Self.recipe(section, over: policy.recipe)
    section.flag("explain", into: &policy.explainsMismatch)
    guard policy.explainsMismatch, policy.recipe.body != .auto, section.isSound("body", "explain") else {
      return
    }
    section["explain"]?.refuse(
      "needs body: auto, which alone compares JSON by members; set that, or remove explain")
  }

  private static func recipe(_ section: Section, over recipe: Recipe) -> Recipe {
    var body = recipe.body
    section.choice("body", into: &body)
    let headers = section.member("headers")?
      .list("a list of header names", of: "a header's name") { text throws(Refusal) in
        try Token.identityField(text)
      }
    let ignore = section.member("ignore")?
      .list("a list of JSON pointers", of: "a JSON pointer") { text throws(Refusal) in
        try JSONPointer.parse(text)
      }
    let read = Recipe(body: body, headers: headers ?? recipe.headers, ignore: ignore ?? recipe.ignore)
    // An inherited list has no effect with another body, and is no error there.
    if let member = section["ignore"], section.isSound("body", "ignore"), body != .auto, !read.ignore.isEmpty
    {
      member.refuse("is for body: auto alone; take it out, or write body: auto")
    }
    return read
  }

  private mutating func readMismatchStatus(_ section: Section) {
    let status = section.member("mismatch_status")?.parsed("409, 422 or 400") { text throws(Refusal) in
      guard ["409", "422", "400"].contains(text), let status = Int(text) else {
        throw Refusal("must be 409, 422 or 400")
      }
      return status
    }
    if let status { policy.mismatchStatus = status }
  }

  private mutating func readResponseTimeout(_ section: Section) {
    var span = policy.responseTimeout ?? 0
    section.duration("response_timeout", into: &span, atLeast: 1)
    if span > 0 { policy.responseTimeout = span }
  }

  private mutating func readRetention(_ section: Section) {
    section.duration("retention", into: &policy.retention, atLeast: .seconds(1))
    section.duration("remember", into: &policy.remember, atLeast: .seconds(1))
    section.duration("unknown_retention", into: &policy.unknownRetention, atLeast: .seconds(1))
    hasRemember = hasRemember || section["remember"] != nil
    if !hasRemember { policy.remember = max(Self.minRemember, policy.retention) }
    guard section.isSound("retention", "remember"), policy.remember < policy.retention else { return }
    let (remember, retention) = (TimeSpan.text(policy.remember), TimeSpan.text(policy.retention))
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

  /// The value of `remember` if neither it nor a longer retention is given.
  private static let minRemember = Self().policy.remember
}

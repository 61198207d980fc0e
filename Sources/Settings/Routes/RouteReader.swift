import Idempotency
import TLS

/// Reads `defaults` and `routes`, and checks each route against the rest of the document.
struct RouteReader {
  /// All other members, as they were read.
  private let settings: Settings
  private let document: Section
  /// The names of all upstreams in the file, including those with an error.
  private let upstreamNames: [String]
  private let requestsCertificates: Bool

  init(_ settings: Settings, _ document: Section) {
    (self.settings, self.document) = (settings, document)
    upstreamNames = document["upstreams"]?.names ?? []
    requestsCertificates = settings.listen.contains { $0.tls?.clientCA != nil }
  }

  private var bodyMemory: Int { settings.limits.bodyMemory }
  private var storeTimeout: Milliseconds { settings.store.timeout }

  func read() -> [RoutePolicy] {
    var defaults = RouteDefaults()
    var inherited = InheritedMembers()
    document["defaults"]?.section { section in
      inherited = InheritedMembers(section)
      section.refuse(["name", "match"], "belongs to a single route; take it out of the defaults")
      defaults.read(section)
      check(defaults.draft, section)
    }
    guard let items = document["routes"]?.items("a list of routes") else { return [] }
    var read: [(policy: RoutePolicy, place: Value)] = []
    var lines: [String: Int] = [:]
    for item in items {
      item.section { section in
        let policy = self.read(section, over: defaults, lines: &lines)
        warn(of: policy, section, item, &inherited)
        warnOfDefaultLimits(of: policy, section, &inherited)
        read.append((policy, item))
      }
    }
    refuseShadowed(read.filter { !$0.place.hasFault })
    return read.map(\.policy)
  }

  /// The members of `defaults` that routes inherit, and the warnings of them.
  private struct InheritedMembers {
    let section: Section?
    /// The warnings so far. Each is given once, however many routes inherit its member.
    private var given: Set<String> = []

    init(_ section: Section? = nil) { self.section = section }

    /// Warns at the first of a route's members, or at the inherited one, of which the same warning is not given again.
    mutating func warn(
      _ warnings: [String?], _ route: Section, _ names: String..., or inherited: String? = nil
    ) {
      let member = names.lazy.compactMap { route[$0] }.first
      guard let place = member ?? section?[inherited ?? names[0]] else { return }
      for case let warning? in warnings
      where member != nil || given.insert("\(place.path) \(warning)").inserted {
        place.warn(warning)
      }
    }

    /// Whether neither the route nor `defaults` have a member, and it is the first time that this is found.
    mutating func isFirstWithout(_ name: String, _ route: Section) -> Bool {
      route[name] == nil && section?[name] == nil && given.insert(name).inserted
    }
  }

  private func warn(
    of policy: RoutePolicy, _ section: Section, _ item: Value, _ inherited: inout InheritedMembers
  ) {
    inherited.warn(
      policy.callerWarnings(requestsCertificates: requestsCertificates), section, "caller")
    inherited.warn([policy.accountHint], section, "caller", "profile", or: "profile")
    inherited.warn([policy.hostWarning], section, "endpoint")
    for warning in policy.keyWarnings { (section["key"] ?? item).warn(warning) }
    inherited.warn(policy.keySourceWarnings + [policy.placeholderWarning], section, "key")
    guard !item.hasFault else { return }
    inherited.warn(
      [policy.takeOverWarning], section, "lease", "on_unknown", "response_timeout", or: "on_unknown")
    if let warning = policy.preflightWarning { section["match"]?.warn(warning) }
    if let warning = policy.bodyKeyWarning { section["match"]?.warn(warning) }
    let retries = inherited.section?["retries"] == nil ? "max_attempts" : "retries"
    inherited.warn([policy.retryWarning], section, "retries", "max_attempts", or: retries)
    inherited.warn([policy.unknownWarning], section, "unknown_retention", "on_unknown", or: "on_unknown")
    inherited.warn(policy.successWarnings, section, "outcomes")
    // A profile's classes are meant, but for the retries that are added to them.
    if section["profile"] == nil || section["outcomes"] != nil {
      inherited.warn([policy.intermediaryWarning], section, "outcomes")
    } else if policy.repeatsAfterIntermediaries {
      inherited.warn([policy.intermediaryWarning], section, "retries")
    }
    inherited.warn([policy.responseWarning], section, "max_response_body")
    inherited.warn(policy.fingerprintWarnings, section, "fingerprint")
    inherited.warn([policy.leaseWarning], section, "lease")
    inherited.warn([policy.rememberWarning], section, "remember")
    inherited.warn([policy.forwardKeyWarning], section, "forward_key", "behind")
  }

  /// Refuses a route that never matches, since the requests that it should protect would go unprotected unnoticed.
  private func refuseShadowed(_ routes: [(policy: RoutePolicy, place: Value)]) {
    var earlier = CoverIndex()
    for (policy, place) in routes {
      let number = earlier.candidates(for: policy).first { routes[$0].policy.covers(policy) }
      earlier.add(policy)
      guard let other = number.map({ routes[$0] }) else { continue }
      let line = other.place.position.line
      place.refuse(
        "\(policy.name) is never met: \(other.policy.name) (\(other.place.path), line \(line)) takes all of its "
          + "requests; write it before that one, or narrow that one's match")
    }
  }

  private func read(
    _ section: Section, over defaults: RouteDefaults, lines: inout [String: Int]
  ) -> RoutePolicy {
    var draft = section["profile"] == nil ? defaults.draft : defaults.unprofiled
    RouteDraft.ownSchema.read(section, into: &draft)
    if let name = section["name"], !name.hasFault {
      if let line = lines[draft.policy.name] {
        name.refuse("must be unique; the route in line \(line) has it too")
      } else {
        lines[draft.policy.name] = section.value.position.line
      }
    }
    if let headers = section["match"]?["headers"] { checkUnderscores(ofHeaders: headers) }
    RouteDraft.schema.read(section, into: &draft)
    draft.adoptBatch(section)
    checkCaller(draft, section)
    draft.checkReconcile(section)
    draft.checkOutcomes(section)
    draft.checkForwardKey(section)
    checkGraphQL(draft, section)
    checkToken(draft, section)
    if draft.policy.caller?.parts.contains(where: \.isOfToken) == true {
      draft.policy.caller?.issuer = settings.jwt?.rules.issuer
    }
    checkUnderscores(draft, section)
    check(draft, section)
    if let upstream = upstream(of: draft, section) { draft.policy.upstream = upstream }
    return draft.policy
  }

  /// Refuses a protected route without a caller, unless an error in its caller has been reported already.
  private func checkCaller(_ draft: RouteDraft, _ section: Section) {
    guard draft.policy.idempotency != .off, !draft.sharesCaller, draft.policy.caller?.parts.isEmpty ?? true
    else { return }
    guard section.isSound("caller", "idempotency"), !section.reader.hasRefused("defaults.caller") else {
      return
    }
    if let caller = section["caller"] {
      caller.refuse(
        "must have parts that say who the caller is: \(CallerPart.allowed); or shared: true for all clients")
    } else {
      let example = "{parts: [\"header:Authorization\"]}"
      section.refuseMissing(
        "caller", "is missing: say who the caller is, such as \(example), or write idempotency: off")
    }
  }

  /// Refuses a route that would take mutations away from the routes that protect them.
  private func checkGraphQL(_ draft: RouteDraft, _ section: Section) {
    guard draft.policy.match.graphql != nil, draft.policy.idempotency == .off, section.isSound("idempotency")
    else { return }
    section["match"]?.refuse(
      "has graphql: mutation, but the route protects nothing; take that out, or write idempotency: required")
  }

  /// Refuses a route whose caller is in a token that nobody could verify.
  private func checkToken(_ draft: RouteDraft, _ section: Section) {
    guard document["jwt"] == nil, draft.policy.idempotency != .off,
      let part = draft.policy.caller?.parts.first(where: \.isOfToken)
    else { return }
    (section["caller"] ?? section.value).refuse(
      "has the part \(part.text), but nothing says how tokens are verified: write jwt: {jwks_file: jwks.json} at the "
        + "top, or another of its sources")
  }

  /// Refuses a protected route if a field that identifies its requests does not reach the backend.
  private func checkUnderscores(_ draft: RouteDraft, _ section: Section) {
    guard settings.underscores == .drop, draft.policy.isProtected else { return }
    guard let name = draft.policy.identityHeaders.first(where: { $0.contains("_") }) else { return }
    section.value.refuse(
      "goes by the header \(name), which does not reach the backend because of its underscore; "
        + "write underscores: pass at the top")
  }

  /// Refuses to choose a route by a field that the backend does not see: it is dropped after the choice.
  private func checkUnderscores(ofHeaders headers: Value) {
    guard settings.underscores == .drop, !headers.hasFault, let members = headers.members("a mapping") else {
      return
    }
    for (name, value) in members where name.contains("_") {
      value.refuseName(
        "does not reach the backend because of its underscore; write underscores: pass at the top, "
          + "or go by another header")
    }
  }

  /// Checks rules with other parts of the document. An error in `defaults` is reported once, at its place there.
  private func check(_ draft: RouteDraft, _ section: Section) {
    if let upstream = section["upstream"], let name = draft.upstream, !upstream.hasFault,
      !upstreamNames.isEmpty, !upstreamNames.contains(name)
    {
      let near = Suggestion.nearest(to: name, in: upstreamNames)
      upstream.refuse("names no upstream; \(near.map { "did you mean \($0)?" } ?? allowedUpstreams)")
    }
    if let lease = section["lease"], !lease.hasFault, draft.policy.lease.count < storeTimeout.count * 2 {
      lease.refuse(
        "must be at least twice the store's timeout, which is \(storeTimeout.text): "
          + "else one slow reply uses it up")
    }
    check(section["max_request_body"], draft.policy.maxRequestBody, "three quarters", bodyMemory / 4 * 3)
    // A quarter is for captured responses alone.
    check(section["max_response_body"], draft.policy.maxResponseBody, "a quarter", bodyMemory / 4)
    warnOfTransfer(section["max_response_body"], draft.policy.maxResponseBody)
  }

  /// Warns of responses that take longer than the store's timeout over a connection of a gigabit.
  private func warnOfTransfer(_ member: Value?, _ size: Int) {
    let bytesPerMillisecond = 10 << 10
    guard let member, !member.hasFault, size <= bodyMemory / 4,
      size / bytesPerMillisecond > storeTimeout.count
    else { return }
    member.warn(
      "may take longer to reach the store than store.timeout, \(storeTimeout.text): such a response is "
        + "neither stored nor replayed; raise that")
  }

  private func check(_ member: Value?, _ size: Int, _ part: String, _ share: Int) {
    guard let member, !member.hasFault else { return }
    if size > bodyMemory {
      member.refuse("must not exceed limits.body_memory, which is \(ByteSize.text(bodyMemory))")
    } else if size > share {
      member.warn(
        "is more than \(part) of limits.body_memory, \(ByteSize.text(share)): a larger body never finds room")
    }
  }

  /// Warns of bodies that find no room although no limit is written for them, once for all routes.
  private func warnOfDefaultLimits(
    of policy: RoutePolicy, _ section: Section, _ inherited: inout InheritedMembers
  ) {
    guard policy.isProtected else { return }
    let limits = [
      ("max_request_body", policy.maxRequestBody, "three quarters", bodyMemory / 4 * 3),
      ("max_response_body", policy.maxResponseBody, "a quarter", bodyMemory / 4),
    ]
    for (name, size, part, share) in limits where size > share && inherited.isFirstWithout(name, section) {
      document["limits"]?["body_memory"]?.warn(
        "\(part) of it, \(ByteSize.text(share)), is less than the default of \(name), \(ByteSize.text(size)): "
          + "a larger body never finds room; raise this, or write a lower \(name)")
    }
  }

  private func upstream(of draft: RouteDraft, _ section: Section) -> UpstreamSettings? {
    if let name = draft.upstream { return settings.upstreams[name] }
    if upstreamNames.count > 1, section.isSound("upstream"), !section.reader.hasRefused("defaults.upstream") {
      section.refuseMissing("upstream", "is missing: there are several; \(allowedUpstreams)")
    }
    return upstreamNames.first.flatMap { settings.upstreams[$0] }
  }

  private var allowedUpstreams: String { "write \(upstreamNames.asAlternatives)" }
}

import Idempotency

extension RouteDraft {
  static let ownSchema = Schema(RouteDraft()) {
    Member("name", \.policy.name, .name(), "the route's name, which is unique").required(
      "is missing: every route needs a name of its own"
    )
    .identity("with `endpoint: route`")
    Member.section("match", \.policy.match, RouteMatch.schema)
  }

  static let schema = Schema(RouteDraft()) {
    Member("upstream", \.upstream, .name("the name of an upstream"), "the name of the upstream").identity()
      .standard("the only one")
    // Before all others, each of which overrides it.
    Member(
      "profile", \.policy.profile, values: Notation<RouteProfile>.word.values,
      "the presets of a well-known API",
      show: { $0.map { .word($0) } }
    ) { draft, value in
      if let profile = Notation<RouteProfile>.word.read(value) { draft.adopt(profile) }
    }.identity("by what it sets")
    Member("idempotency", \.policy.idempotency, .word, "`optional`: requests without a key pass; `off`: all")
      .identity("if it is switched off")
      .then { if $1["idempotency"] != nil { $0.isOptionalByProfile = false } }
    Member.section("key", \.policy.key, KeyPolicy.schema)
      .then { if $1["key"]?["from"] != nil { $0.hasKeySources = true } }
    Member.optional("caller", \.caller, Caller.schema)
    Member(
      "endpoint", \.endpoint, values: RouteDraft.Endpoint.forms, "in one word, the scope",
      show: { $0.host == .own ? .word($0.scope) : RouteDraft.Endpoint.schema.shown($0) },
      read: { $0.endpoint.read($1) }
    ).identity().parts(RouteDraft.Endpoint.schema.rows)
    Member(
      "spelling", \.policy.spelling, .word, "`lenient`: `//`, a `/` at the end and `;parameters` do not count"
    )
    .identity()
    Member(
      "encoded_slashes", \.policy.encodedSlashes, .word,
      "`keep`: an encoded slash in a path is a character of its segment"
    ).then { $0.checkSlashes($1) }
    Member(
      "method_override", \.policy.methodOverride, .flag,
      "`true`: a request that names another method counts as that method's; else it is refused"
    )
    Member("content_coding", \.policy.contentCoding, .word, "`pass`: the codings that the client accepts")
    Member(
      "forward_key", \.policy.forwardKey, values: KeyForwarding.forms,
      "what the backend gets of the header that holds the key", show: { $0.shown },
      read: { $0.readForwardKey($1) })
    Member.section("fingerprint", \.fingerprint, Fingerprint.schema)
    Member(
      "mismatch_status", \.policy.mismatchStatus, .integer([409, 422, 400]),
      "the status for another payload under a used key")
    Member(
      "in_flight_status", \.policy.inFlightStatus, .integer([409, 425, 429, 503]),
      "the status for a delivery that does not wait for another one in flight, or has waited long enough")
    Member("echo_key", \.policy.echoesKey, .flag, "`true`: responses repeat the key, in its own field")
    Member(
      "duplicates", \.policy.duplicates, .word,
      "`reject` refuses a delivery at once while another one is in flight")
    Member("wait_timeout", \.policy.waitTimeout, .duration(), "the time for which a duplicate waits")
    Member(
      "max_waiters", \.policy.maxWaiters, .integer(1...100_000), "duplicates of one key that wait on a node")
    // A renewal has a third of the lease; with less than a second, a busy machine would lose claims.
    Member(
      "lease", \.policy.lease, .duration(atLeast: .seconds(1)),
      "the time of a claim without renewal; at least twice `store.timeout`")
    Member(
      "retention", \.policy.retention, .duration(atLeast: .seconds(1)),
      "the time for which a response is replayed")
    Member(
      "remember", \.policy.remember, .duration(atLeast: .seconds(1)),
      "the time for which a key is remembered, and after which a retry runs again; at least `retention`"
    ).standard("twice `retention`, at least `24h`")
    Member(
      "unknown_retention", \.policy.unknownRetention, .duration(atLeast: .seconds(1)),
      "the time for which an unknown outcome is kept"
    ).then { $0.adoptRetention($1) }
    Member(
      "outcomes", \.policy.outcomes, values: OutcomePatterns.forms,
      "the classes of responses, over the defaults; the first rule that fits counts", show: { $0.shown },
      read: { $0.patterns.read($1) }
    ).standard("none").parts(OutcomeRule.schema.rows, within: "outcomes[]")
      .then { draft, _ in draft.policy.outcomes = draft.patterns.table }
    Member(
      "released", \.policy.released, .word,
      "`forget`: after an attempt of class `retry`, another payload may follow under the key"
    ).then { if $1["released"] != nil { $0.forgetsByProfile = false } }
    Member("behind", \.policy.behind, .word, "`own_keys`: the backend has a table of keys of its own")
    Member(
      "on_unknown", \.policy.onUnknown, .word,
      "after `settle`, the next delivery runs (`retry`) or the backend is queried (`reconcile`)")
    Member(
      "max_attempts", \.policy.maxAttempts, .limit(atMost: 1_000_000),
      "attempts that are sent; 0 for no limit")
    Member(
      "on_store_failure", \.policy.onStoreFailure, .word,
      "`open`: requests run without records while the store is down")
    // One buffer holds a body, and none takes more than 4 GiB.
    Member(
      "max_request_body", \.policy.maxRequestBody, .size(0...2 << 30),
      "the size of a request's body; at most `limits.body_memory`"
    )
    .then { draft, _ in draft.policy.recipe = draft.policy.recipe.limited(to: draft.policy.maxRequestBody) }
    Member(
      "body_timeout", \.policy.bodyTimeout, .duration(atLeast: 1),
      "instead of `limits.body_timeout`, for the bodies of the route's requests"
    ).standard("that of `limits`")
    Member(
      "max_response_body", \.policy.maxResponseBody, .size(0...2 << 30),
      "the size of a response's body that is recorded")
    Member(
      "response_timeout", \.policy.responseTimeout, .duration(atLeast: 1), "the time for a response"
    ).showing { .span($0.policy.timeToResponse) }.standard("the upstream's")
    Member("set_cookie", \.policy.setCookie, .word, "`keep` records `Set-Cookie`, too")
    Member(
      "record", \.policy.record, .word,
      "`status`: the outcome is recorded without its response, which holds a secret")
    Member.section("replay", \.policy.replay, ReplayPolicy.schema)
    Member.optional("batch", \.policy.batch, BatchPolicy.schema)
    Member("stream", \.policy.stream, .flag, "`true` passes a response on as it comes, but for its end")
    Member(
      "cors", \.policy.cors, values: "true, false or a section", "`true`: Semel's fields are exposed, too",
      show: { $0?.shown ?? .flag(false) }, read: { $0.policy.cors = CORSPolicy.read($1) }
    ).parts(CORSPolicy.schema.rows)
    Member("shadow", \.policy.shadow, .flag, "`true`: requests are only observed").identity(
      "if it is switched on"
    )
    .then { $0.checkShadow($1) }
    Member(
      "retries", \.policy.retries, values: "off or a section", "the retries that Semel makes for its clients",
      show: { $0.map(RetryPolicy.schema.shown) ?? .text("off") }, read: { $0.readRetries($1) }
    ).parts(RetryPolicy.schema.rows)
    Member.optional("reconcile", \.policy.reconcile, ReconcilePolicy.schema)
  }
}

extension RouteDraft.Endpoint {
  fileprivate static let forms = "path, route or a section such as {host: any}"

  fileprivate static let schema = Schema(RouteDraft.Endpoint()) {
    Member("scope", \.scope, .word, "`route`: all paths of the route share their keys").identity()
    Member("host", \.host, .word, "`any`: all hosts share their keys").identity()
  }

  fileprivate mutating func read(_ value: Value) {
    guard !value.isMapping else { return value.section { Self.schema.read($0, into: &self) } }
    let scope = value.choice(Self.forms) { RoutePolicy.Endpoint(rawValue: $0) }
    if let scope { self = Self(scope: scope) }
  }
}

extension RouteDraft.Caller {
  fileprivate static let schema = Schema(
    RouteDraft.Caller(), misplaced: { $0.misplaced($1.name) }, check: { $0.check($1) }
  ) {
    Member("shared", \.isShared, .flag, "`true`, instead of parts: all clients are one caller").identity()
      .showing { $0.isShared ? .flag(true) : nil }.standard("`false`").then { $0.adoptShared($1) }
    Member(
      "parts", \.policy.parts,
      values:
        "a list of \(CallerPart.allowed); jwt:CLAIM@cookie:NAME and jwt:CLAIM@header:NAME for tokens in other places",
      "the parts of a request that say who its caller is; of alternatives the first that it has",
      show: { .texts($0.map(\.text)) }, read: { $0.readParts($1) }
    ).identity().standard("required")
    Member("anonymous", \.policy.anonymous, .word, "`allow`: a missing part counts as an empty one")
    Member(
      "schemes", \.policy.schemes, .schemes,
      "further schemes of `Authorization` that stay the same over retries")
  }
}

extension RouteDraft.Fingerprint {
  fileprivate static let schema = Schema(RouteDraft.Fingerprint(), check: { $0.check($1) }) {
    Member("body", \.body, .word, "`auto`: by its media type").identity("where `payload` is a key")
    Member("headers", \.headers, .fieldNames, "the fields that count").identity("where `payload` is a key")
    Member(
      "ignore", \.ignore, .parts(PayloadPart.allowedInIgnore),
      "the parts that do not count; `*` in a pointer stands for all elements of an array"
    ).identity("where `payload` is a key")
    Member(
      "only", \.only, .parts(PayloadPart.allowed), "in place of `ignore`: the parts that alone count"
    ).identity("where `payload` is a key")
    Member("explain", \.explain, .flag, "with `body: auto`: which members of a refused payload differ")
  }
}

extension Notation<[String]> {
  fileprivate static let schemes = Notation.list(
    "a list such as [GNAP]", of: "a scheme", show: { .text($0) },
    parse: { text throws(Refusal) in try Token.scheme(text) })

  fileprivate static let fieldNames = Notation.list(
    "a list of header names", of: "a header's name", show: { .text($0) },
    parse: { text throws(Refusal) in try Token.identityField(text) })

}

extension RoutePolicy {
  /// The route's complete settings, with those from `defaults` and from the built-in defaults.
  var shown: Shown {
    let draft = RouteDraft(self)
    return .members(RouteDraft.ownSchema.shownMembers(draft) + RouteDraft.schema.shownMembers(draft))
  }
}

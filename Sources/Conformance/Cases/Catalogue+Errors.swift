extension Catalogue {
  private static let missing = Script(.deliver(Delivery(.none)))
  private static let unauthenticated = Script(
    .deliver(Delivery(.fresh("b")).with(\.caller, .none)),
    .deliver(Delivery(.values(["\"{a}"])).with(\.caller, .none)))

  static let errors: [Case] =
    missingKeys + reusedKeys + conflicts + [
      Section.errors.should(
        "unauthenticated-first", "credentials are examined before the key", needs: [.credentials],
        unauthenticated
      ) { evidence in
        guard let first = evidence[0] else { return .undecided(evidence.absence(0)) }
        guard [401, 403].contains(first.status) else {
          return .observed("a request without credentials gets \(first.status)")
        }
        guard let second = evidence[1] else { return .undecided(evidence.absence(1)) }
        return second.status == first.status
          ? .met("\(first.status)")
          : .violated("a malformed key gets \(second.status) instead of \(first.status)")
      }
    ]

  private static let missingKeys: [Case] = [
    Section.errors.should("missing-400", "a request without a key is refused with 400", missing) { evidence in
      if let response = evidence[0], response.isSuccess, !evidence.expected.requiresKey {
        return .observed("a request without a key runs")
      }
      return evidence.refused(0, with: [400])
    },
    Section.errors.should(
      "missing-described", "that refusal is a problem document or leads to the documentation", missing
    ) { $0.described(0) },
    Section.errors.must(
      "missing-not-run", "a request that is refused for want of a key does not run", needs: [.oracle], missing
    ) { evidence in
      guard let response = evidence[0] else { return .undecided(evidence.absence(0)) }
      return response.isRefusal ? evidence.ran(0) : .observed("not refused (\(response.status))")
    },
  ]

  private static let reusedKeys: [Case] = [
    Section.errors.should(
      "reuse-status", "a used key with another payload is refused with 422", needs: [.otherPayload], reuse
    ) { $0.refused(1, with: $0.expected.mismatchStatuses) },
    Section.errors.should(
      "reuse-described", "that refusal is a problem document or leads to the documentation",
      needs: [.otherPayload], reuse
    ) { $0.described(1) },
    Section.errors.must(
      "reuse-refused-again", "the same mistake is refused again", needs: [.otherPayload], reuse
    ) { $0.refused(2) },
    Section.errors.should(
      "reuse-first-remains", "the first payload still gets its result", needs: [.otherPayload], reuse
    ) { $0.sameResult(0, 3) },
  ]

  private static let conflicts: [Case] = [
    Section.errors.should(
      "in-flight-409", "a duplicate in flight is refused with 409", needs: [.slowRequest], inFlight
    ) { evidence in
      let conflict = evidence.conflict()
      guard case .met(let note) = conflict, let duplicate = evidence[evidence.duplicate] else {
        return conflict
      }
      return duplicate.isSuccess ? .observed(note) : evidence.refused(evidence.duplicate, with: [409])
    },
    Section.errors.should(
      "in-flight-described", "that refusal is a problem document or leads to the documentation",
      needs: [.slowRequest], inFlight
    ) { $0.described($0.duplicate) },
    Section.errors.may(
      "in-flight-retry-after", "that refusal says when to retry", needs: [.slowRequest], inFlight
    ) {
      evidence in
      guard let refusal = evidence[evidence.duplicate], refusal.isRefusal else {
        return .undecided("no refusal")
      }
      return .observed(refusal["Retry-After"].map { "Retry-After: \($0)" } ?? "no Retry-After")
    },
  ]
}

extension Catalogue {
  static let syntax: [Case] =
    [
      Section.syntax.must(
        "quoted", "a key is a String of RFC 8941", Script(.deliver(Delivery(.values(["\"{a}\""]))))
      ) { $0.succeeded(0) },
      Section.syntax.may("bare", "a key without quotes", twice("{a}")) { evidence in
        evidence.oneIntentOrRefused().asObservation
      },
      Section.syntax.may(
        "quoted-is-bare", "a quoted and a bare key with the same characters",
        Script(.deliver(Delivery(.values(["\"{a}\""]))), .deliver(Delivery(.values(["{a}"]))))
      ) { evidence in
        guard let quoted = evidence[0], let bare = evidence[1], quoted.isSuccess, bare.isSuccess else {
          return .observed("only one of the two is taken")
        }
        guard let isReplay = evidence.isReplay(1) else { return evidence.alike }
        return .observed(isReplay ? "the same key" : "two keys")
      },
    ] + validForms + malformedForms

  /// Strings that an endpoint may take, or refuse by a format of its own, but not ignore.
  private static let validForms: [Case] = [
    ("escapes", "a String with an escaped quote and an escaped backslash", "\"{a}\\\"\\\\\""),
    ("parameters", "a String with a parameter", "\"{a}\";q=1"),
    ("spaces-around", "a String with white space around it", "  \"{a}\"  "),
    ("length-255", "a String of 255 characters", "\"{a}\(String(repeating: "x", count: 219))\""),
    ("length-1024", "a String of 1,024 characters", "\"{a}\(String(repeating: "x", count: 988))\""),
  ].map { name, title, value in
    Section.syntax.should(name, title + " is one key, or refused", twice(value)) { evidence in
      evidence.oneIntentOrRefused()
    }
  }

  /// Values that are no String. To ignore them would run a retry again without a word.
  private static let malformedForms: [Case] =
    [
      ("integer", "an Integer", "{a:integer}"),
      ("list", "a List", "\"{a}\", \"{b}\""),
      ("comma", "a bare value with a comma", "{a},{b}"),
      ("unterminated", "a String without its closing quote", "\"{a}"),
      ("bad-escape", "a String with an escape that does not exist", "\"{a}\\n\""),
      ("non-ascii", "a String with bytes above ASCII", "\"{a}é\""),
      ("empty-string", "an empty String", "\"\""),
      ("empty-value", "an empty field", ""),
    ].map { name, title, value in
      Section.syntax.should(name, title + " is refused, or at least not ignored", twice(value)) { evidence in
        evidence.oneIntentOrRefused(taken: .observed("taken as a key"), isFresh: value.contains("{a"))
      }
    } + [
      Section.syntax.should(
        "repeated", "two key fields in one request are refused", twice("\"{a}\"", "\"{b}\"")
      ) {
        $0.oneIntentOrRefused(taken: .violated("a request with two keys was accepted"))
      }
    ]
}

extension Finding {
  /// The finding as a behaviour to report: neither good nor bad.
  var asObservation: Finding {
    switch self {
    case .met(let text), .observed(let text), .violated(let text): .observed(text)
    case .undecided: self
    }
  }
}

extension Catalogue {
  static let uniqueness: [Case] = [
    Section.uniqueness.must(
      "other-payload-not-run", "a used key with another payload does not run",
      needs: [.oracle, .otherPayload], reuse
    ) { $0.ran(1) },
    Section.uniqueness.must(
      "other-payload-refused", "a used key with another payload is refused, and gets no old response",
      needs: [.otherPayload], reuse
    ) { $0.refused(1) },
    Section.uniqueness.must(
      "other-key-runs", "the same payload under another key runs", needs: [.oracle],
      Script(.deliver(Delivery()), .deliver(Delivery(.fresh("b"))))
    ) { .all($0.ran(2), $0.succeeded(1)) },
    Section.uniqueness.should(
      "other-method", "another method under the same key gets no old response",
      Script(.deliver(Delivery()), .deliver(Delivery().with(\.method, "PUT")))
    ) { evidence in
      guard let first = evidence[0] else { return .undecided(evidence.absence(0)) }
      guard let other = evidence[1] else { return .undecided(evidence.absence(1)) }
      let met = Finding.met("PUT: \(other.status)")
      guard other.isSuccess, other.hasSameResult(as: first) else { return met }
      guard let isReplay = evidence.isReplay(1) else { return evidence.alike }
      return isReplay ? .violated("PUT got the response to the first delivery") : met
    },
    Section.uniqueness.may(
      "trailing-slash", "the same key on the path with a slash behind it",
      Script(.deliver(Delivery()), .deliver(Delivery().with(\.target, .trailingSlash)))
    ) { evidence in
      guard evidence[0] != nil, let other = evidence[1] else { return .undecided("no response") }
      if !other.isSuccess { return .observed("refused with \(other.status)") }
      guard let isReplay = evidence.isReplay(1) else { return evidence.alike }
      return .observed(isReplay ? "one key" : "two keys")
    },
  ]
}

extension Catalogue {
  /// A request without a key and a reused key, and then the document to which their refusals lead.
  static let documentation = Script(
    .deliver(Delivery(.none)), .deliver(Delivery()), .deliver(Delivery(.fresh("a"), .other)), .documentation)

  static let validity: [Case] = [
    Section.validity.should(
      "expiry-published", "the documentation states how long keys are remembered", documentation
    ) { evidence in
      guard case .fetched(let url, .response(let page)) = evidence.documentation, page.isSuccess else {
        return .undecided("no documentation was read")
      }
      return namesRetention(page.text) ? .met(url) : .violated("\(url) names no expiry and no retention")
    },
    Section.validity.may(
      "after-expiry", "a key after its expiry", needs: [.ttl],
      Script(.deliver(Delivery()), .expiry, .deliver(Delivery()))
    ) { evidence in
      guard evidence[0] != nil else { return .undecided(evidence.absence(0)) }
      guard let later = evidence[1] else { return .undecided(evidence.absence(1)) }
      if !later.isSuccess { return .observed("refused with \(later.status)") }
      guard let isReplay = evidence.isReplay(1) else { return evidence.alike }
      return .observed(isReplay ? "replayed after its expiry" : "runs again")
    },
  ]

  /// Whether a page has a word for the time for which keys are remembered, or names a time such as `24h` or `7 days`.
  static func namesRetention(_ page: String) -> Bool {
    let text = page.lowercased()
    let stems = ["expir", "retention", "retain", "remember", "lifetime", "time to live", "hours", "days"]
    if stems.contains(where: { text.contains($0) }) { return true }
    let words = text.split { !$0.isLetter && !$0.isNumber }.map(String.init)
    return zip(words, words.dropFirst() + [""]).contains { word, next in
      guard word.first?.isNumber == true else { return word == "ttl" }
      let unit = String(word.drop(while: \.isNumber))
      return timeUnits.contains(unit.isEmpty ? next : unit)
    }
  }

  private static let timeUnits: Set = [
    "h", "hr", "hrs", "hour", "d", "day", "week", "weeks", "month", "months", "min", "minutes",
  ]

  static let responsibilities: [Case] = [
    Section.responsibilities.should(
      "documentation", "the document to which refusals lead can be read", documentation
    ) { evidence in
      switch evidence.documentation {
      case .notLooked, .noLink: .undecided("no refusal leads to a document")
      case .elsewhere(let url): .observed("on another host, and not fetched: \(url)")
      case .fetched(let url, .response(let page)):
        page.isSuccess ? .met(url) : .violated("\(url): \(page.status)")
      case .fetched(let url, _): .violated("\(url) cannot be read")
      }
    },
    Section.responsibilities.may(
      "key-on-get", "a key on GET, where none is documented",
      Script(.deliver(Delivery(.fresh("a"), .empty).with(\.method, "GET")))
    ) { evidence in
      guard let response = evidence[0] else { return .undecided(evidence.absence(0)) }
      return response.isServerError
        ? .violated("failed with \(response.status)") : .observed("\(response.status)")
    },
  ]

  static let fingerprint: [Case] =
    [
      spelling(
        "white-space", "white space in JSON", needs: [.jsonPayload],
        Delivery(.fresh("a"), .rewritten(.spaced))),
      spelling(
        "member-order", "the order of members in JSON", needs: [.jsonPayload],
        Delivery(.fresh("a"), .rewritten(.reordered))),
      spelling(
        "numbers", "numbers with and without a fraction of zero", needs: [.jsonPayload],
        Delivery(.fresh("a"), .rewritten(.renumbered))),
      spelling(
        "media-type-parameters", "parameters of the media type",
        Delivery().with(\.mediaTypeParameters, "; charset=utf-8")),
      spelling(
        "multipart-boundary", "another boundary of multipart", needs: [.multipartPayload],
        Delivery(.fresh("a"), .rewritten(.rebounded))),
      spelling("content-coding", "the body under gzip", Delivery(.fresh("a"), .rewritten(.compressed))),
      spelling("query", "a parameter of the query", Delivery().with(\.target, .query("semel-conformance=1"))),
    ] + [
      Section.fingerprint.should(
        "changing-headers", "fields that change with every attempt do not turn a retry into another request",
        Script(
          .deliver(Delivery()),
          .deliver(
            Delivery().with(
              \.fields,
              [
                "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "X-Request-Id: second-attempt", "User-Agent: semel-conformance/2",
              ])))
      ) { $0.retried() },
      Section.fingerprint.should(
        "chunked", "the same body in chunks is the same request",
        Script(.deliver(Delivery()), .deliver(Delivery().with(\.framing, .chunked)))
      ) { evidence in
        if let status = evidence[1]?.status, [411, 501].contains(status) {
          return .observed("chunks are refused with \(status)")
        }
        return evidence.retried()
      },
    ]

  private static func spelling(
    _ name: String, _ subject: String, needs: Set<Need> = [], _ second: Delivery
  ) -> Case {
    Section.fingerprint.must(
      name, subject + ": the same payload or another one, but not run again", needs: needs,
      Script(.deliver(Delivery()), .deliver(second))
    ) { $0.treatmentOfSpelling() }
  }
}

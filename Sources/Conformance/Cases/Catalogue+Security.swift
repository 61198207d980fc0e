import Wire

extension Catalogue {
  private static let sameByOther = Script(
    .deliver(Delivery()), .deliver(Delivery().with(\.caller, .other)))
  private static let otherByOther = Script(
    .deliver(Delivery()), .deliver(Delivery(.fresh("a"), .other).with(\.caller, .other)))
  private static let withoutCredentials = Script(
    .deliver(Delivery()), .deliver(Delivery(.fresh("b")).with(\.caller, .none)),
    .deliver(Delivery().with(\.caller, .none)))

  static let security: [Case] = formats + injections + pairs + callers

  private static let formats: [Case] = [
    Section.security.should(
      "format-before-lookup", "the format of a key is enforced before its record is looked up",
      needs: [.otherPayload],
      Script(.deliver(Delivery(.values(["\"{a}"]))), .deliver(Delivery(.values(["\"{a}"]), .other)))
    ) { evidence in
      guard let first = evidence[0] else { return evidence.refusedByClosing(0) }
      guard let second = evidence[1] else { return .undecided(evidence.absence(1)) }
      if first.isSuccess { return .violated("a String without its closing quote was accepted") }
      return second.status == first.status
        ? .met("\(first.status)") : .violated("\(first.status), then \(second.status) for another payload")
    },
    Section.security.must(
      "mismatch-reveals-nothing", "a refusal because of another payload holds nothing of the first request",
      needs: [.otherPayload], reuse
    ) { evidence in
      guard let first = evidence[0] else { return .undecided(evidence.absence(0)) }
      guard let refusal = evidence[1], refusal.isRefusal else { return .undecided("not refused") }
      let own = String(decoding: evidence.exchanges[1].request.body, as: UTF8.self)
      let marks = (first.json?.scalars ?? []).filter { $0.count >= 4 && $0.contains(where: \.isNumber) }
      let secrets = (marks + evidence.confidential).filter { !own.contains($0) }
      let shown = refusal.fields.map(\.line).joined(separator: "\n") + "\n" + refusal.text
      guard let leak = secrets.first(where: { shown.contains($0) }) else { return .met() }
      return .violated("it contains \(leak.jsonString)")
    },
  ]

  private static let injections: [Case] = [
    ("quotes", "quotes and a comment", "\"{a}'--\\\"\""),
    ("braces", "braces and a command", "\"{a}${x}%s$(id)\""),
    ("parent", "steps to a parent folder", "\"{a}/../../etc\""),
    ("carriage-return", "a bare CR", "\"{a}\rX-Injected: 1\""),
    ("line-feed", "a bare LF", "\"{a}\nX-Injected: 1\""),
    ("nul", "a NUL", "\"{a}\0\""),
    ("64-kibibytes", "64 KiB", "\"{a}\(String(repeating: "x", count: 64 << 10))\""),
  ].map { name, content, value in
    Section.security.should(
      "key-with-\(name)", "a key with \(content) is refused, or a key like any other", twice(value)
    ) { evidence in
      if evidence.responses.contains(where: { $0["X-Injected"] != nil }) {
        return .violated("the response has a field out of the key")
      }
      return evidence.oneIntentOrRefused()
    }
  }

  /// The middle of a key of 255 characters that begins with a UUID.
  private static let filler = String(repeating: "x", count: 218)

  /// Pairs of keys that a careless comparison takes for one.
  private static let pairs: [Case] = [
    ("keys-stay-apart", "that a path or a separator could join", "{a}/../{b}", "{b}"),
    ("key-separators", "that differ in a separator only", "{a}-1", "{a}_1"),
    ("key-letter-case", "that differ in letter case only", "{a}-k", "{a}-K"),
    ("key-endings", "that differ in their last character only", "{a}", "{a:sibling}"),
    (
      "long-key-endings", "of 255 characters that differ in the last one only", "{a}\(filler)x",
      "{a}\(filler)y"
    ),
  ].map { name, subject, first, second in
    Section.security.must(
      name, "keys \(subject) are two keys",
      Script(.deliver(Delivery(.text(first))), .deliver(Delivery(.text(second))))
    ) { $0.twoIntents() }
  }

  private static let callers: [Case] = [
    Section.security.must(
      "other-caller-runs", "another caller's request with the same key runs",
      needs: [.oracle, .otherCaller], sameByOther
    ) { $0.ran(2) },
    Section.security.must(
      "other-caller-sees-nothing", "another caller with the same key gets no response of the first",
      needs: [.otherCaller], sameByOther
    ) { evidence in
      guard let first = evidence[0] else { return .undecided(evidence.absence(0)) }
      guard let second = evidence[1] else { return .undecided(evidence.absence(1)) }
      guard second.isSuccess, second.hasSameResult(as: first) else { return .met("\(second.status)") }
      switch evidence.executions {
      case .exactly(2...): return .met("equal results of two runs")
      case .exactly: return .violated("another caller got the first one's response")
      case .atLeast, .unknown:
        return second.markers(comparedWith: first).isEmpty
          ? .undecided("equal results: only an oracle can tell") : .violated("marked as a replay")
      }
    },
    Section.security.must(
      "other-caller-learns-nothing", "another caller cannot find out that a key is in use",
      needs: [.otherCaller, .otherPayload], otherByOther
    ) { evidence in
      guard let second = evidence[1] else { return .undecided(evidence.absence(1)) }
      if second.isSuccess {
        guard evidence[0] != nil else { return .undecided(evidence.absence(0)) }
        guard let isReplay = evidence.isReplay(1) else { return evidence.alike }
        return isReplay ? .violated("another caller got the first one's response") : .met("\(second.status)")
      }
      return [401, 403].contains(second.status)
        ? .undecided("the other caller is refused with \(second.status)")
        : .violated("refused with \(second.status)")
    },
    Section.security.must(
      "no-replay-without-credentials", "nobody gets a replay without credentials", needs: [.credentials],
      withoutCredentials
    ) { evidence in
      guard let fresh = evidence[1] else { return .undecided(evidence.absence(1)) }
      guard let used = evidence[2] else { return .undecided(evidence.absence(2)) }
      if fresh.isSuccess { return .observed("requests run without credentials") }
      return used.isSuccess ? .violated("replayed without credentials") : .met("\(used.status)")
    },
  ]

  static let beyond: [Case] = [
    Section.beyond.must(
      "pipelined", "two deliveries on one connection at once run once", needs: [.oracle],
      Script(.pipelined([Delivery(), Delivery()]))
    ) { $0.ran(1) },
    Section.beyond.should(
      "expect-continue", "a delivery that expects 100 is the same request",
      Script(.deliver(Delivery()), .deliver(Delivery().with(\.framing, .expectation)))
    ) { evidence in
      evidence[1]?.status == 417 ? .observed("refused with 417") : evidence.retried()
    },
    Section.beyond.should(
      "thousand-keys", "a key is still known after a thousand others",
      Script(.deliver(Delivery()), .flood(1000), .deliver(Delivery()))
    ) { .all($0.succeeded(0), $0.retried(runs: 1001)) }.costly,
    Section.beyond.may(
      "empty-body", "a key on a request without a body",
      Script(.deliver(Delivery(.fresh("a"), .empty)), .deliver(Delivery(.fresh("a"), .empty)))
    ) { $0.oneIntentOrRefused().asObservation },
    Section.beyond.may(
      "preflight", "a page of another origin that wants to send a key",
      Script(
        .deliver(
          Delivery(.none, .empty).with(\.method, "OPTIONS").with(
            \.fields,
            [
              "Origin: https://page.example", "Access-Control-Request-Method: POST",
              "Access-Control-Request-Headers: idempotency-key",
            ])))
    ) { evidence in
      guard let response = evidence[0] else { return .undecided(evidence.absence(0)) }
      let allowed = response["Access-Control-Allow-Headers"]?.lowercased() ?? ""
      return .observed(
        allowed.contains("idempotency-key") || allowed.contains("*")
          ? "allowed" : "not allowed (\(response.status))")
    },
  ]
}

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

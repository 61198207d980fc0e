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

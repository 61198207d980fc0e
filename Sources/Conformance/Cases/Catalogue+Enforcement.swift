extension Catalogue {
  static let retry = Script(.deliver(Delivery()), .deliver(Delivery()), .deliver(Delivery()))
  static let inFlight = Script(
    .overlapping(Delivery(.fresh("a"), .slow), [Delivery(.fresh("a"), .slow)]))
  private static let inFlightOther = Script(
    .overlapping(Delivery(.fresh("a"), .slow), [Delivery(.fresh("a"), .otherThanSlow)]))
  private static let refusedByApplication = Script(
    .deliver(Delivery(.fresh("a"), .malformed)), .deliver(Delivery(.fresh("a"), .malformed)),
    .deliver(Delivery()))
  private static let failing = Script(
    .deliver(Delivery(.fresh("a"), .failing)), .deliver(Delivery(.fresh("a"), .failing)),
    .deliver(Delivery(.fresh("b"), .failing)))

  static let enforcement: [Case] = firstRuns + retries + hangUps + concurrent + whileInFlight

  private static let firstRuns: [Case] = [
    Section.enforcement.should("first-run", "a first request is processed normally", .firstRun) {
      $0.succeeded(0)
    },
    Section.enforcement.must(
      "first-run-runs-once", "a first request runs once", needs: [.oracle], .firstRun
    ) { evidence in
      guard let response = evidence[0], response.isSuccess else {
        return .undecided("the request is refused")
      }
      return evidence.ran(1)
    },
  ]

  private static let retries: [Case] = [
    Section.enforcement.must("retry-runs-once", "a retry does not run again", needs: [.oracle], retry) {
      $0.ran(1)
    },
    Section.enforcement.should(
      "retry-same-result", "a retry gets the first result, byte for byte", retry
    ) { .all($0.sameResult(0, 1), $0.sameResult(0, 2)) },
    Section.enforcement.should(
      "retry-same-fields", "a retry gets the fields that describe the first result", retry
    ) { evidence in
      guard let first = evidence[0] else { return .undecided(evidence.absence(0)) }
      guard let second = evidence[1] else { return .undecided(evidence.absence(1)) }
      let names = ["Content-Type", "Content-Language", "Content-Encoding", "Location", "ETag"]
      let lost = names.filter { first[$0] != second[$0] }
      guard lost.isEmpty else { return .violated("changed or lost: \(lost.joined(separator: ", "))") }
      return evidence.mayHaveRunAgain() ? evidence.alike : .met()
    },
    Section.enforcement.may("marker", "fields by which a replay can be recognised", retry) { evidence in
      guard let first = evidence[0], let second = evidence[1] else { return .undecided("no response") }
      let new = second.markers(comparedWith: first)
      guard new.isEmpty else { return .observed(new.map(\.line).joined(separator: ", ")) }
      return evidence.mayHaveRunAgain() ? evidence.alike : .observed("none")
    },
    Section.enforcement.may(
      "application-4xx", "a result of 4xx of the application itself, and the key after it",
      refusedByApplication
    ) { $0.fateOfRefusal() },
    Section.enforcement.should(
      "application-error", "an error of the application is a result, too", needs: [.failingRequest], failing
    ) { $0.fateOfError() },
  ]

  private static let hangUps: [Case] = [
    ("hang-up-after-sending", "after its last byte", Step.HangUp.afterSending),
    ("hang-up-while-waiting", "while it waits for the response", .whileWaiting),
    ("hang-up-during-response", "during the response", .duringResponse),
  ].map { name, moment, hangUp in
    Section.enforcement.must(
      name, "a client that goes away \(moment) and retries: run once", needs: [.oracle],
      Script(.hangUp(Delivery(), hangUp), .settle(Delivery()))
    ) { $0.ran(1) }
  }

  private static let concurrent: [Case] =
    [2, 8, 32].map { count in
      Section.enforcement.must(
        "concurrent-\(count)", "\(count) deliveries at once run once", needs: [.oracle], together(count)
      ) { $0.ran(1) }
    } + [
      Section.enforcement.should(
        "concurrent-results", "deliveries at once get one result, or a conflict", together(8)
      ) { evidence in
        let results = evidence.responses.filter(\.isSuccess)
        if let failed = evidence.responses.first(where: \.isServerError) {
          return .violated("failed with \(failed.status)")
        }
        guard let first = results.first else { return .violated("none of them got a result") }
        guard results.allSatisfy({ $0.hasSameResult(as: first) }) else {
          return .violated("different results")
        }
        if results.count > 1, evidence.mayHaveRunAgain() { return evidence.alike }
        return .met("\(results.count) results, \(evidence.responses.count - results.count) refusals")
      }
    ]

  private static func together(_ count: Int) -> Script {
    Script(.together(Array(repeating: Delivery(), count: count)))
  }

  private static let whileInFlight: [Case] = [
    Section.enforcement.must(
      "in-flight-runs-once", "a duplicate in flight does not run", needs: [.oracle, .slowRequest], inFlight
    ) { .all($0.overlapped(), $0.ran(1)) },
    Section.enforcement.must(
      "in-flight-conflict", "a duplicate in flight gets a conflict", needs: [.slowRequest], inFlight
    ) { $0.conflict() },
    Section.enforcement.must(
      "in-flight-other-payload", "another payload under a key in flight is refused, and does not run",
      needs: [.oracle, .slowRequest], inFlightOther
    ) { .all($0.overlapped(), $0.ran(1), $0.refused($0.duplicate)) },
  ]
}

extension Evidence {
  func overlapped() -> Finding {
    guard exchanges.count > 1 else { return .undecided("nothing was sent in flight") }
    return exchanges[1].sent < exchanges[0].ended
      ? .met() : .undecided("the slow request was over before the second delivery was sent")
  }

  /// The number of the delivery that came as a duplicate. It is the first one if the second one has overtaken it.
  var duplicate: Int { self[0]?.isRefusal == true && self[1]?.isSuccess == true ? 0 : 1 }

  /// Checks that a duplicate in flight was refused; a profile may let it wait instead.
  func conflict() -> Finding {
    let overlap = overlapped()
    guard case .met = overlap else { return overlap }
    guard let first = self[0] else { return .undecided(absence(0)) }
    guard let second = self[1] else { return .undecided(absence(1)) }
    guard first.isSuccess, second.isSuccess else { return refused(duplicate) }
    let isReplay = isReplay(1)
    if isReplay == false, case .violated(let times) = ran(1) { return .violated(times) }
    if isReplay == true, second.hasSameResult(as: first) {
      let waited = "waited for the first delivery's result"
      return expected.allowsWaiting ? .met(waited) : .violated(waited)
    }
    guard expected.allowsWaiting, isReplay != false else { return .violated("accepted (\(second.status))") }
    return isReplay == nil ? alike : .observed("the same request, another response (\(second.status))")
  }

  /// The fate of an error of the application. Another key's error shows whether equal ones can be those of two runs.
  fileprivate func fateOfError() -> Finding {
    guard let first = self[0] else { return .undecided(absence(0)) }
    guard first.status >= 400 else { return .undecided("the failing request got \(first.status)") }
    guard let second = self[1] else { return .undecided(absence(1)) }
    guard second.hasSameResult(as: first) else { return sameResult(0, 1) }
    switch executions {
    case .exactly(2): return .met("\(first.status)")
    case .exactly(3...): return ran(2)
    case .exactly, .atLeast, .unknown:
      guard let other = self[2] else { return .undecided(absence(2)) }
      guard other.hasSameResult(as: first) else { return .met("\(first.status)") }
      return .undecided("another key has the same error: only an oracle that counts failed runs can tell")
    }
  }

  fileprivate func fateOfRefusal() -> Finding {
    guard let first = self[0] else { return .undecided(absence(0)) }
    guard let corrected = self[2] else { return .undecided(absence(2)) }
    guard first.isRefusal else { return .undecided("JSON that breaks off got \(first.status)") }
    if corrected.isSuccess { return .observed("not stored: the corrected request runs") }
    return .observed(
      corrected.hasSameResult(as: first)
        ? "stored: the corrected request gets the old \(first.status)"
        : "stored: the corrected request is refused with \(corrected.status)")
  }
}

extension RawResponse {
  /// The fields of a replay that distinguish it from the first response.
  func markers(comparedWith first: RawResponse) -> [HeaderLine] {
    let volatile: Set = ["date", "age", "expires", "set-cookie", "server-timing", "connection", "keep-alive"]
    return fields.filter { field in
      let name = field.name.lowercased()
      let isAboutReplays = name.contains("idempoten") || name.contains("replay") || name.contains("cache")
      return !volatile.contains(name) && isAboutReplays && first[field.name] != field.value
    }
  }
}

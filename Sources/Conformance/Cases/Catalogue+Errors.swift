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

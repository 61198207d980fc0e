import Idempotency

extension RoutePolicy {
  var successWarnings: [String] {
    guard isEnforced else { return [] }
    var warnings: [String] = []
    for verdict in [OutcomeRule.Verdict.retry, .deleted] {
      guard let (statuses, remedy) = successes(of: verdict) else { continue }
      warnings.append(
        "counts success under \(verdict.rawValue) (\(statuses)): the record is released, and the next delivery of a "
          + "request that has succeeded runs again; \(remedy)")
    }
    if let (statuses, remedy) = successes(of: .unknown) {
      warnings.append(
        "counts success under unknown (\(statuses)): the next delivery of a request that has succeeded gets 409 "
          + "outcome_unknown in place of its response; \(remedy)")
    }
    return warnings
  }

  /// The statuses of success with a verdict, such as `200 and others`, and the remedy. 202 may be unknown (RFC 9110,
  /// section 15.3.3). A rule that wants a value may mean what a backend calls a failure; one that takes any value may
  /// take every success.
  private func successes(of verdict: OutcomeRule.Verdict) -> (statuses: String, remedy: String)? {
    let statuses = (200..<300).filter { status in
      outcomes.mayBe(verdict, whateverValues: status) && (verdict != .unknown || status != 202)
    }
    guard let first = statuses.first else { return nil }
    let remedy =
      outcomes.verdict(byStatus: first) == verdict
      ? "take 2xx out of \(verdict.rawValue)"
      : "give the rule that names no value the statuses that it means, such as [4xx, 5xx], or the value by which a "
        + "response says so"
    return ("\(first)\(statuses.count > 1 ? " and others" : "")", remedy)
  }

  var intermediaryWarning: String? {
    guard isEnforced else { return nil }
    let released = OutcomeTable.ofIntermediaries.filter { outcomes[$0] == .retry }
    guard let first = released.first else { return nil }
    let statuses = released.map(String.init).joined(separator: ", ")
    let isRuled = outcomes.rules != nil || outcomes.preset != .standard
    return
      "counts \(statuses) under \(outcomes.verdict(byStatus: first).rawValue): a gateway or a CDN responds so when it "
      + "does not know whether the backend has run the request, or still runs it; the next delivery, or a retry of "
      + "Semel's own, may then run it twice; unless none stands between Semel and the backend, write "
      + (isRuled ? "{status: [\(statuses)], is: unknown} as the first rule" : "unknown: [\(statuses)]")
  }

  /// Whether Semel itself repeats a request after a status by which an intermediary says that it does not know.
  var repeatsAfterIntermediaries: Bool {
    retries?.on.contains(where: OutcomeTable.ofIntermediaries.contains) ?? false
  }

  /// An equal payload that is the key may be wanted again.
  var rememberWarning: String? {
    guard isEnforced, !key.from.contains(.payload), remember == retention || remember < .seconds(24 * 3600)
    else { return nil }
    let least = max(.seconds(24 * 3600), min(TimeSpan.max, retention + retention))
    return
      "is \(remember.text)\(remember == retention ? ", as long as retention" : ""): a retry that comes later "
      + "finds no record and runs again; write \(least.text) or more, by which it gets 409 key_expired, or take "
      + "this out for the default"
  }
}

extension RoutePolicy {
  /// The doubts about what counts as a payload: that a retry has another one, or that two operations have the same.
  var fingerprintWarnings: [String] {
    guard isProtected else { return [] }
    var warnings: [String] = []
    if let name = recipe.headers.first(where: Self.isOfOneDelivery) {
      warnings.append(Self.deliveryWarning(name, "fields"))
    }
    if let part = recipe.only.first(where: \.changesWithDelivery) {
      warnings.append(Self.deliveryWarning("\(part.text) in only", "parts"))
    }
    if let warning = bodyWarning { warnings.append(warning) }
    warnings += recipe.ignore.filter(\.namesOperation).map(Self.operationWarning)
    warnings += recipe.ignore.compactMap(\.arrayOfElements).map(Self.elementWarning)
    return warnings
  }

  private static func deliveryWarning(_ name: String, _ kind: String) -> String {
    "lists \(name), which is commonly different in each delivery: every retry is a payload_mismatch then; "
      + "list \(kind) alone that are part of the operation"
  }

  /// The reason why all bodies are one payload; `nil` if there is none. `body: none` says that it is meant.
  private var bodyWarning: String? {
    guard recipe.body == .auto, recipe.leavesOutBody,
      match.methods.isEmpty || !match.methods.allSatisfy(Self.bodilessMethods.contains)
    else { return nil }
    return
      "names nothing of the body in only (\(recipe.only.map(\.text).joined(separator: ", "))), so that no body counts: a "
      + "client that uses a key for a second operation gets the first one's response; name what makes the operation, such "
      + "as /amount or form:amount, or write body: none, too, if that is meant"
  }

  private static func operationWarning(_ part: PayloadPart) -> String {
    "leaves \(part.text) out, which commonly names the operation: a client that uses a key for a second operation gets "
      + "the first one's response then; leave out alone what differs in each delivery, such as query:timestamp"
  }

  private static func elementWarning(_ array: String) -> String {
    "leaves \(array)/* out, and elements of an array cannot be left out, only members of objects; write \(array) for the "
      + "whole array"
  }
}

extension PayloadPart {
  /// Whether the value commonly belongs to one delivery alone.
  fileprivate var changesWithDelivery: Bool {
    switch self {
    case .json(let pointer), .literal(let pointer): CallerPart.json(pointer).changesWithDelivery
    case .query(let name), .form(let name), .part(let name): CallerPart.query(name).changesWithDelivery
    case .fileNames: false
    }
  }

  /// Whether the value commonly says what is to be done, and not only with what.
  fileprivate var namesOperation: Bool {
    switch self {
    case .query(let name), .form(let name), .part(let name): Self.operationNames.contains(name.lowercased())
    case .json(let pointer), .literal(let pointer):
      Self.operationNames.contains(pointer.dropFirst().lowercased())
    case .fileNames: false
    }
  }

  /// Names of parameters by which frameworks, JSON-RPC and GraphQL choose an operation.
  private static let operationNames: Set<String> = [
    "_method", "action", "cmd", "command", "method", "mutation", "op", "operation", "operationname", "query",
    "variables",
  ]

  /// The pointer of an array whose elements the part names; `nil` for any other part.
  fileprivate var arrayOfElements: String? {
    guard case .json(let pointer) = self, pointer.hasSuffix("/*"), pointer != "/*" else { return nil }
    return String(pointer.dropLast(2))
  }
}

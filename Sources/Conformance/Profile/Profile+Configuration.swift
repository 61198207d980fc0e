import Wire

extension Profile {
  /// The purposes of a configuration.
  enum Purpose {
    /// A route that protects the API's requests, and keeps to what its clients know already.
    case recommended
    /// A route that behaves like the API, as far as Semel can, with the API's faults.
    case alike
  }

  /// A whole configuration of Semel for the API.
  func configuration(_ purpose: Purpose) -> String {
    """
    \(members.joined(separator: "\n"))
    routes:
      - \(routeMembers(purpose).joined(separator: "\n    "))

    """
  }

  /// The configuration that behaves like the API; `nil` if the recommended one does, and for an API of which nothing
  /// shows that it takes keys.
  var alikeConfiguration: String? {
    guard !ignoresKeys, !showsNoKeys else { return nil }
    let alike = configuration(.alike)
    return alike == configuration(.recommended) ? nil : alike
  }

  /// The top-level members but for the routes.
  private var members: [String] {
    // The API itself may have the usual port of this machine.
    let port = setup.endpoint.isLoopback && setup.endpoint.port == 8080 ? 8090 : 8080
    return [
      "listen: [{address: \"127.0.0.1:\(port)\"}]", "upstreams: {api: {url: \(origin.jsonString)}}",
      "store: {kind: embedded, path: semel.db}",
    ] + (passesUnderscores ? ["underscores: pass"] : [])
  }

  /// Whether a field by which requests are identified reaches the API only if Semel passes underscores.
  private var passesUnderscores: Bool {
    setup.keyHeader.contains("_")
      || setup.callerPart.map { $0.hasPrefix("header:") && $0.contains("_") } == true
  }

  private var origin: String {
    "\(setup.endpoint.isSecure ? "https" : "http")://\(setup.endpoint.authority)"
  }

  private func routeMembers(_ purpose: Purpose) -> [String] {
    [
      "name: api",
      "match: {methods: [\(setup.method)], path: \(setup.endpoint.path.jsonString)}",
      "key: {from: [\("header:\(setup.keyHeader)".jsonString)]}",
      "caller: \(caller(purpose))",
      response("2.7/missing-400", 0)?.isSuccess == true ? "idempotency: optional" : "idempotency: required",
      mismatchStatus.map { "mismatch_status: \($0)" },
      duplicates.map { "duplicates: \($0)" },
      retry.map { "outcomes: {retry: [\($0)]}" },
    ].compactMap(\.self) + (purpose == .alike ? faults : [])
  }

  /// The members that weaken a route to what the API does: payloads that are not compared, or by their bytes alone, and
  /// keys that are forgotten early.
  private var faults: [String] {
    [
      fingerprint.map { "fingerprint: {body: \($0)}" },
      retention.map { "retention: \($0)\n    remember: \($0)" },
    ].compactMap(\.self)
  }

  /// The field by which the check knows callers. If the check knows none, the reader is to name the field: one caller
  /// must not get the responses to another one. Callers share their keys only to behave like an API that has them do so.
  private func caller(_ purpose: Purpose) -> String {
    if purpose == .alike, sharesKeys || !setup.mayNameCaller { return "{shared: true}" }
    if let part = setup.callerPart { return "{parts: [\(part.jsonString)]}" }
    return "{parts: [\"header:Authorization\"]} # name the field by which the API knows its callers"
  }

  /// True if another caller was seen to get the first one's responses.
  private var sharesKeys: Bool { verdict("5/other-caller-runs")?.kind == .fail }

  /// The status of a mismatch, if Semel has it.
  private var mismatchStatus: Int? {
    response("2.7/reuse-status", 1).map(\.status).flatMap { [400, 409, 422].contains($0) ? $0 : nil }
  }

  private var duplicates: String? {
    switch duplicateTreatment {
    case .waits?: "wait"
    case .refused?: "reject"
    case .runs?, .accepted?, nil: nil
    }
  }

  private var fingerprint: String? {
    guard let seen = evidence("2.7/reuse-status"), seen[0] != nil, let second = seen[1] else { return nil }
    // A payload that ran under the same key was distinguished, although it was not refused.
    if second.isSuccess { return seen.isReplay(1) == true && !ignoresKeys ? "none" : nil }
    return reason("2.4/white-space")?.hasPrefix("distinguished") == true ? "raw" : nil
  }

  /// The class of statuses after which the API runs a key again.
  private var retry: String? {
    reason("2.6/application-4xx")?.hasPrefix("not stored") == true
      ? response("2.6/application-4xx", 0).map { "\($0.status)" } : nil
  }

  private var retention: String? {
    guard let ttl = setup.ttl, reason("2.3/after-expiry") == "runs again" else { return nil }
    return "\(max(1, ttl.components.seconds))s"
  }
}

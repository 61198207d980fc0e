import Wire

extension Profile {
  /// A whole configuration of Semel whose route behaves like the API, as far as Semel can.
  var configuration: String {
    """
    listen: [{address: "127.0.0.1:8080"}]
    upstreams: {api: {url: \(origin.jsonString)}}
    store: {kind: embedded, path: semel.db}
    routes:
      - \(routeMembers.joined(separator: "\n    "))

    """
  }

  private var origin: String {
    "\(setup.endpoint.isSecure ? "https" : "http")://\(setup.endpoint.authority)"
  }

  private var routeMembers: [String] {
    [
      "name: api",
      "match: {methods: [\(setup.method)], path: \(setup.endpoint.path.jsonString)}",
      "key: {from: [\("header:\(setup.keyHeader)".jsonString)]}",
      "caller: \(caller)",
      response("2.7/missing-400", 0)?.isSuccess == true ? "idempotency: optional" : "idempotency: required",
      mismatchStatus.map { "mismatch_status: \($0)" },
      duplicates.map { "duplicates: \($0)" },
      fingerprint.map { "fingerprint: {body: \($0)}" },
      retry.map { "outcomes: {retry: [\($0)]}" },
      retention.map { "retention: \($0)\n    remember: \($0)" },
    ].compactMap(\.self)
  }

  /// The fields by which the check knows callers; without one all are one caller.
  private var caller: String {
    if verdict("5/other-caller-runs")?.kind == .fail { return "{shared: true}" }
    let names = setup.headers.map(\.name).filter(Setup.isCredential)
    guard let name = setup.otherCaller?.name ?? names.first else { return "{shared: true}" }
    return "{parts: [\("header:\(name)".jsonString)]}"
  }

  /// The status of a mismatch, if Semel has it.
  private var mismatchStatus: Int? {
    response("2.7/reuse-status", 1).map(\.status).flatMap { [400, 409, 422].contains($0) ? $0 : nil }
  }

  private var duplicates: String? {
    if let second = response("2.6/in-flight-conflict", 1) { return second.isSuccess ? "wait" : "reject" }
    return nil
  }

  private var fingerprint: String? {
    guard let second = response("2.7/reuse-status", 1) else { return nil }
    if second.isSuccess { return "none" }
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

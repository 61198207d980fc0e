/// The likeness of the results that a run got under different keys. Each script has keys of its own, so that the first
/// deliveries of two scripts are two intents. Where they have the same result, equal results show no replay.
struct ResultLikeness {
  private let keysShareResults: Bool
  private let keysShareIDs: Bool

  init(_ evidence: [Script: Evidence], _ oracle: OracleSettings?) {
    // Keys that are malformed may be one key to the endpoint: they are compared with good ones alone.
    var good: [RawResponse] = []
    var others: [RawResponse] = []
    for (script, evidence) in evidence {
      guard let delivery = script.deliveries.first, delivery.key != Delivery.Key.none,
        delivery.with(\.key, Delivery().key) == Delivery(), let response = evidence[0], response.isSuccess
      else { continue }
      if delivery == Delivery() { good.append(response) } else { others.append(response) }
    }
    keysShareResults = Self.hasEqual(good.map(Result.init), others.map(Result.init))
    guard case .responses(let pointer)? = oracle else {
      keysShareIDs = false
      return
    }
    // Each response is parsed once: it may have megabytes.
    let ids = { (responses: [RawResponse]) in
      responses.compactMap { $0.json?.value(at: pointer)?.scalarText }
    }
    keysShareIDs = Self.hasEqual(ids(good), ids(others))
  }

  private struct Result: Hashable {
    let status: Int
    let body: [UInt8]

    init(_ response: RawResponse) { (status, body) = (response.status, response.body) }
  }

  /// Whether two of the good values are equal, or a good one and another.
  private static func hasEqual<Value: Hashable>(_ good: [Value], _ others: [Value]) -> Bool {
    let distinct = Set(good)
    return distinct.count < good.count || others.contains { distinct.contains($0) }
  }

  /// The evidence of a script, with what the whole run has shown about it.
  func weighed(_ evidence: Evidence) -> Evidence {
    var evidence = evidence
    evidence.keysShareResults = keysShareResults
    if keysShareIDs {
      evidence.executions = .unknown
      evidence.oracleFault = "two keys got the same id"
    }
    return evidence
  }
}

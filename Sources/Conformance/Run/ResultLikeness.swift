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
    let pairs = good.enumerated().flatMap { index, response in
      (Array(good.dropFirst(index + 1)) + others).map { (response, $0) }
    }
    keysShareResults = pairs.contains { $0.hasSameResult(as: $1) }
    guard case .responses(let pointer)? = oracle else {
      keysShareIDs = false
      return
    }
    keysShareIDs = pairs.contains { first, second in
      let id = first.json?.value(at: pointer)?.scalarText
      return id != nil && id == second.json?.value(at: pointer)?.scalarText
    }
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

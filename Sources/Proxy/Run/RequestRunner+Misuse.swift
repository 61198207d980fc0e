import Idempotency
import Platform
import Telemetry

/// The counts of clients that misuse their keys.
extension RequestRunner {
  /// Counts a first run whose key has just been another caller's, whose payload has come under other new keys, or whose
  /// key is weak.
  @inline(never)
  func countSighting(_ claim: Claim, of call: KeyedCall) {
    // If the payload is the key, two callers with equal payloads have the same key and need not be one client.
    guard claim.ordinal == 1, !call.key.isOfPayload else { return }
    let route = call.route.number
    if call.isKeySeenUnderOtherCaller(in: environment.sightings, at: claim.requestedAt) {
      worker.metrics.add(.keysUnderOtherCaller)
      worker.metrics.add(Suspicion.sharedKey, route: route)
    }
    let keys = call.keysOfPayload(in: environment.misuse)
    if keys > 1 { worker.metrics.add(.payloadsUnderNewKey, route: route) }
    if keys >= MisuseSketch.maxKeys { worker.metrics.add(Suspicion.samePayload, route: route) }
    if call.key.isWeak { worker.metrics.add(Suspicion.weakKey, route: route) }
  }

  /// Counts a refused payload that is one of several in a row.
  @inline(never)
  func countMismatch(of call: KeyedCall) {
    guard environment.misuse.noteMismatch(caller: call.callerHash, now: .now) else { return }
    worker.metrics.add(Suspicion.mismatches, route: call.route.number)
  }
}
